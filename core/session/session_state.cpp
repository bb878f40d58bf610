// The calls of a session that read its last commit, keep it, or change its knobs.

#include <algorithm>

#include "core/control/knob.h"
#include "core/offload/residual_file.h"
#include "core/plan/run_plan.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/run_state.h"
#include "core/session/session.h"
#include "core/session/session_schedule.h"
#include "storage/state/state_reader.h"

namespace sluice::session {
namespace {

Status check_array(const std::vector<std::string>& arrays, std::size_t array) {
  if (array < arrays.size()) return ok_status();
  return make_error(ErrorCode::config, "array {}: the state has {}, from {} on", array,
                    arrays.size(), arrays.front());
}

Status check_elements(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t has = element_count(tensor);
  if (first >= 0 && count <= has && first <= has - count) return ok_status();
  return make_error(ErrorCode::config, "elements {} to {} of {}: it has {}", first, first + count,
                    tensor.name, has);
}

Status read_elements(OpenRun& run, std::size_t array, std::int64_t first, std::span<float> out) {
  ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(run.state().store()));
  float* next = out.data();
  return reader.read(static_cast<std::int32_t>(array), first, std::ssize(out),
                     [&next](std::span<const float> values) {
                       next = std::ranges::copy(values, next).out;
                       return ok_status();
                     });
}

}  // namespace

Status Session::read_state(std::size_t tensor, std::size_t array, std::int64_t first,
                           std::span<float> out) {
  const std::vector<Tensor>& tensors = schedule_->request().tensors;
  if (tensor >= tensors.size()) {
    return make_error(ErrorCode::config, "tensor {}: the session has {}", tensor, tensors.size());
  }
  RETURN_IF_ERROR(check_array(state_arrays_, array));
  RETURN_IF_ERROR(check_elements(tensors[tensor], first, std::ssize(out)));
  const LayerId layer = schedule_->tensors().layer(tensor);
  if (layer == kNoLayer) {
    return make_error(ErrorCode::config, "{} is frozen, and has no state", tensors[tensor].name);
  }
  const std::int64_t begin = schedule_->tensors().layout().tensors.at(index_of(layer)).first;
  return schedule_->between_steps(
      [&](OpenRun& run) { return read_elements(run, array, begin + first, out); });
}

Result<std::int64_t> Session::updates_done() {
  std::int64_t updates = 0;
  RETURN_IF_ERROR(schedule_->between_steps([&](OpenRun& run) {
    updates = run.state().store().committed().position.optimizer_step;
    return ok_status();
  }));
  return updates;
}

Result<std::string> Session::digest() {
  std::string digest;
  RETURN_IF_ERROR(schedule_->between_steps([&](OpenRun& run) -> Status {
    ASSIGN_OR_RETURN(const state::StateDigest found,
                     state::digest_state(run.state().store(), nullptr, nullptr));
    digest = found.digest;
    return ok_status();
  }));
  return digest;
}

Result<SnapshotDone> Session::save_snapshot(const std::string& folder) {
  SnapshotDone done;
  RETURN_IF_ERROR(schedule_->between_steps([&](OpenRun& run) -> Status {
    ASSIGN_OR_RETURN(const KeptSnapshot kept,
                     run.state().save_snapshot(folder, residual_of(run), {}));
    done = {kept.saved.step, kept.saved.size_bytes};
    return ok_status();
  }));
  return done;
}

Status Session::set(const std::vector<std::string>& settings) {
  return schedule_->ask({.kind = Note::Kind::change, .settings = &settings});
}

Result<std::vector<Knob>> Session::knobs() {
  std::vector<Knob> knobs;
  RETURN_IF_ERROR(schedule_->at_once([&](OpenRun& run) {
    for (control::Knob& knob : settings::knobs(run.plan().config)) {
      knobs.push_back({std::move(knob.key), std::move(knob.value), std::move(knob.values)});
    }
    return ok_status();
  }));
  return knobs;
}

}  // namespace sluice::session
