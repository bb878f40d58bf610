#include "core/offload/state_versions.h"

#include "base/check.h"
#include "core/offload/step_update.h"
#include "core/runtime/runtime.h"

namespace sluice::offload {
namespace {

IdRange<SubgroupId> subgroups_of(const state::Layout& layout) {
  return all_ids<SubgroupId>(layout.geometry().subgroup_count());
}

}  // namespace

StateVersions::StateVersions(state::Layout& layout, state::DeviceMap device_map)
    : layout_(layout), device_map_(std::move(device_map)) {
  const std::int32_t subgroup_count = layout.geometry().subgroup_count();
  if (device_map_.empty()) {
    for (const SubgroupId subgroup : subgroups_of(layout)) {
      device_map_.push_back(layout.device(subgroup));
    }
  }
  CHECK_EQ(std::ssize(device_map_), subgroup_count);
  record_.subgroups.resize(static_cast<std::size_t>(subgroup_count));
}

bool StateVersions::moves_any() const {
  for (const SubgroupId subgroup : subgroups_of(layout_)) {
    if (newest(subgroup).device != device_of(subgroup)) return true;
  }
  return false;
}

// Whether a committed version lies elsewhere than the next one: a commit then moves it.
bool StateVersions::leaves_any() const {
  for (const SubgroupId subgroup : subgroups_of(layout_)) {
    if (committed(subgroup).device != device_of(subgroup)) return true;
  }
  return false;
}

// Until the step before has ended, its next version is the one to update, if it made one.
state::SlotId StateVersions::source_of(SubgroupId subgroup, const StepUpdate& update) const {
  const bool is_under_way = !update.started.is_set() && update.before->decision.apply;
  return is_under_way ? update.before->next_slot[subgroup] : newest(subgroup);
}

std::int64_t StateVersions::offset_bytes(state::SlotId slot, std::int32_t variable,
                                         std::int64_t element_count) const {
  return layout_.extent(slot, variable, element_count).offset_bytes;
}

Status StateVersions::take_next(StepUpdate& update) {
  for (const SubgroupId subgroup : ids_of(update.next_slot)) {
    update.next_slot[subgroup] =
        has_working_ ? newest(subgroup) : layout_.take_next(subgroup, device_of(subgroup));
  }
  // Reserved by whoever gave the map, so nothing as a rule.
  return moves_any() ? reserve() : ok_status();
}

void StateVersions::end_step(const StepUpdate& update, const state::TrainingPosition& position) {
  record_.position = position;
  has_uncommitted_ = true;
  if (!update.decision.apply) {
    if (!has_working_) layout_.abandon();  // a working version stays what it was
    return;
  }
  for (const SubgroupId subgroup : ids_of(update.next_slot)) {
    record_.subgroups[static_cast<std::size_t>(index_of(subgroup))] = {
        update.next_slot[subgroup], update.next_checksums[subgroup]};
  }
  // The initial state is made in the slots that are current already.
  has_working_ = update.next_slot[SubgroupId{0}] != committed(SubgroupId{0});
}

runtime::Task<Status> StateVersions::commit(runtime::Runtime& runtime, std::int32_t step) {
  runtime::Operation operation;
  operation.runtime = &runtime;
  operation.label.stage = stages::Stage::commit;
  operation.label.step = step;
  add_commit_work(operation);
  Status written = co_await operation;
  CO_RETURN_IF_ERROR(written);
  if (committed_elsewhere_) {
    Status elsewhere = co_await committed_elsewhere_(step);
    CO_RETURN_IF_ERROR(elsewhere);
  }
  const bool has_moved = has_working_ && leaves_any();
  has_working_ = false;
  has_uncommitted_ = false;
  committed_step_ = record_.position.step;
  Status finished = finish_commit(has_moved);
  co_return finished;
}

StoredVersions::StoredVersions(state::StateStore& store, state::DeviceMap device_map)
    : StateVersions(store.layout(), std::move(device_map)), store_(store) {
  record_ = store.committed();  // no subgroups before the first commit
  committed_step_ = record_.position.step;
  record_.subgroups.resize(static_cast<std::size_t>(geometry().subgroup_count()));
}

std::int64_t StoredVersions::offset_bytes(state::SlotId slot, std::int32_t variable,
                                          std::int64_t element_count) const {
  return store_.file_offset(layout_.extent(slot, variable, element_count));
}

void StoredVersions::add_commit_work(runtime::Operation& operation) {
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [this] { return store_.write_commit(record_); };
}

Status StoredVersions::finish_commit(bool has_moved) {
  store_.finish_commit(record_);
  return has_moved ? store_.fit() : ok_status();
}

Status CountedVersions::finish_commit(bool has_moved) {
  layout_.commit();
  if (has_moved) layout_.fit();
  return ok_status();
}

}  // namespace sluice::offload
