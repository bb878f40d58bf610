#include "core/session/format_change.h"

#include <algorithm>
#include <filesystem>

#include "core/plan/run_plan.h"
#include "storage/state/replacement.h"
#include "storage/state/state_reader.h"
#include "storage/state/state_writer.h"

namespace sluice::session {
namespace {

using state::StateStore;

// There while the new state takes the place of the old one.
std::string note_path(const StateStore::Options& options) {
  return options.directory + "/replacing";
}

Status take_place(const StateStore::Options& options) {
  RETURN_IF_ERROR(state::put_in_place(options));
  return state::drop_note(options, note_path(options));
}

// But for the format, and for devices that have nothing and may leave.
Status check_found(const plan::RunPlan& plan, const StateStore& found,
                   const state::Geometry& found_geometry, const state::StateIdentity& wanted,
                   const std::string& directory) {
  state::StateIdentity identity = wanted;
  identity.variable_names = found.identity().variable_names;
  RETURN_IF_ERROR(state::check_identity(identity, found.identity(), directory));
  state::Geometry geometry = plan.geometry;
  geometry.variable_count = found_geometry.variable_count;
  geometry.codes = found_geometry.codes;
  geometry.device_count = std::max(geometry.device_count, found_geometry.device_count);
  return state::check_geometry(geometry, found_geometry, directory);
}

Status write_anew(StateStore& from, StateStore& to, const Stops& stops) {
  ASSIGN_OR_RETURN(state::StateReader reader, state::StateReader::make(from));
  state::StateWriter writer(to);
  const state::Geometry& geometry = to.layout().geometry();
  state::CommitRecord record;
  record.position = from.committed().position;
  for (const SubgroupId subgroup : all_ids<SubgroupId>(geometry.subgroup_count())) {
    RETURN_IF_ERROR(unless_stopped(stops, "writing the state in another format"));
    for (std::int32_t v = 0; v < geometry.stored().decoded_count(); ++v) {
      auto into = writer.values(subgroup, v).begin();
      RETURN_IF_ERROR(reader.read(v, geometry.first_element(subgroup),
                                  geometry.element_count(subgroup),
                                  [&into](std::span<const float> values) {
                                    into = std::ranges::copy(values, into).out;
                                    return ok_status();
                                  }));
    }
    ASSIGN_OR_RETURN(record.subgroups.emplace_back(), writer.write(subgroup));
  }
  return to.commit(record);
}

Status make_replacement(const plan::RunPlan& plan, const StateStore::Options& options,
                        const state::StateIdentity& wanted, StateStore& from, const Stops& stops) {
  RETURN_IF_ERROR(state::prepare_replacement(options, plan.geometry.device_count));
  StateStore::Options made = options;
  made.directory = state::replacement_of(options.directory);
  ASSIGN_OR_RETURN(const auto to, StateStore::create(made, wanted, plan.geometry, plan.device_map));
  RETURN_IF_ERROR(write_anew(from, *to, stops));
  return state::carry_residual(options, made);
}

}  // namespace

Status finish_format_change(const StateStore::Options& options) {
  std::error_code ignored;
  const bool is_cut = std::filesystem::exists(note_path(options), ignored);
  return is_cut ? take_place(options) : ok_status();
}

Result<std::optional<StateFormat>> change_format(const plan::RunPlan& plan,
                                                 const StateStore::Options& options,
                                                 state::StateIdentity wanted, const Stops& stops) {
  RETURN_IF_ERROR(finish_format_change(options));
  std::optional<StateFormat> changed;
  {
    ASSIGN_OR_RETURN(const auto from, StateStore::open(options));  // nobody else has it
    RETURN_IF_ERROR(state::drop_replacement(options));             // one that was cut
    const state::Geometry geometry = from->layout().geometry();
    if (geometry.codes == plan.geometry.codes) return changed;
    // Tensors have the name of their folder, and a folder may be moved, or be a copy.
    if (plan.is_of_tensors()) wanted.model_name = from->identity().model_name;
    RETURN_IF_ERROR(check_found(plan, *from, geometry, wanted, options.directory));
    RETURN_IF_ERROR(state::digest_state(*from, nullptr, nullptr));  // damage is not carried over
    const Status made = make_replacement(plan, options, wanted, *from, stops);
    if (!made.ok()) {
      const Status dropped = state::drop_replacement(options);
      static_cast<void>(dropped);  // the first error is the one to tell
      return made.error();
    }
    changed = format_of(geometry.stored());
  }
  RETURN_IF_ERROR(state::keep_note(options, note_path(options), "a new state\n"));
  RETURN_IF_ERROR(take_place(options));
  return changed;
}

}  // namespace sluice::session
