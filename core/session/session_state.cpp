#include "core/session/session_state.h"

#include <algorithm>

#include "core/offload/residual_file.h"
#include "core/plan/run_plan.h"
#include "core/session/note_box.h"
#include "core/session/open_run.h"
#include "core/session/run_state.h"
#include "core/session/session_schedule.h"
#include "core/session/tensor_table.h"
#include "storage/state/state_reader.h"

namespace sluice::session {
namespace {

constexpr const char* kReading = "the state";

Status check_elements(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  const std::int64_t has = element_count(tensor);
  if (first >= 0 && count <= has && first <= has - count) return ok_status();
  return make_error(ErrorCode::config, "elements {} to {} of {}: it has {}", first, first + count,
                    tensor.name, has);
}

std::vector<std::string> array_names(OpenRun& run) {
  state::StateStore& store = run.state().store();
  return state::decoded_names(store.identity(), store.layout().geometry().stored());
}

Status read_elements(OpenRun& run, std::size_t array, std::int64_t first, std::span<float> out) {
  const std::vector<std::string> names = array_names(run);
  if (array >= names.size()) {
    return make_error(ErrorCode::config, "array {}: the state has {}, from {} on", array,
                      names.size(), names.front());
  }
  ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(run.state().store()));
  float* next = out.data();
  return reader.read(static_cast<std::int32_t>(array), first, std::ssize(out),
                     [&next](std::span<const float> values) {
                       next = std::ranges::copy(values, next).out;
                       return ok_status();
                     });
}

}  // namespace

Result<std::vector<std::string>> SessionState::arrays() {
  std::vector<std::string> names;
  RETURN_IF_ERROR(session_.schedule_->at_once([&](OpenRun& run) {
    names = array_names(run);
    return ok_status();
  }));
  return names;
}

Result<std::int64_t> SessionState::updates_done() {
  std::int64_t updates = 0;
  RETURN_IF_ERROR(session_.schedule_->between(kReading, [&](OpenRun& run) {
    updates = run.state().store().committed().position.optimizer_step;
    return ok_status();
  }));
  return updates;
}

Status SessionState::read(std::size_t tensor, std::size_t array, std::int64_t first,
                          std::span<float> out) {
  Session::Schedule& schedule = *session_.schedule_;
  const std::vector<Tensor>& tensors = schedule.request().tensors;
  if (tensor >= tensors.size()) {
    return make_error(ErrorCode::config, "tensor {}: the session has {}", tensor, tensors.size());
  }
  RETURN_IF_ERROR(check_elements(tensors[tensor], first, std::ssize(out)));
  const LayerId layer = schedule.tensors().layer(tensor);
  if (layer == kNoLayer) {
    return make_error(ErrorCode::config, "{} is frozen, and has no state", tensors[tensor].name);
  }
  const auto place = static_cast<std::size_t>(index_of(layer));
  const std::int64_t begin = schedule.tensors().layout().tensors.at(place).first;
  return schedule.between(
      kReading, [&](OpenRun& run) { return read_elements(run, array, begin + first, out); });
}

Result<std::string> SessionState::digest() {
  std::string digest;
  RETURN_IF_ERROR(session_.schedule_->between("the digest", [&](OpenRun& run) -> Status {
    ASSIGN_OR_RETURN(const state::StateDigest found,
                     state::digest_state(run.state().store(), nullptr, nullptr));
    digest = found.digest;
    return ok_status();
  }));
  return digest;
}

Result<std::int64_t> SessionState::save_snapshot(const std::string& folder) {
  std::int64_t size_bytes = 0;
  RETURN_IF_ERROR(session_.schedule_->between("a snapshot", [&](OpenRun& run) -> Status {
    ASSIGN_OR_RETURN(const KeptSnapshot kept,
                     run.state().save_snapshot(folder, residual_of(run), {}));
    size_bytes = kept.saved.size_bytes;
    return ok_status();
  }));
  return size_bytes;
}

}  // namespace sluice::session
