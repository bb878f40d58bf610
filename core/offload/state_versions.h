#pragma once
// The versions of the optimizer state as a step sees them: which slot holds a subgroup's current
// one, which device updates it and gets the next, and how the next becomes current. Two kinds:
// stored in files, and only counted, where there is no payload.
//
// Where the device map gives a subgroup to another device than its state lies on, its next update
// reads the state there and writes the next version here: it has moved with that commit, and
// nothing was transferred for it alone.
//
// Thread contract: the schedule's thread; the commit's work runs on a worker while the owner only
// reads.

#include <memory>

#include "core/offload/step_update.h"
#include "core/runtime/operation.h"
#include "storage/state/state_store.h"

namespace sluice::offload {

class StateVersions {
 public:
  // An empty map: each subgroup's device is the one that it lies on.
  StateVersions(state::Layout& layout, state::DeviceMap device_map);
  virtual ~StateVersions() = default;

  const state::Geometry& geometry() const { return layout_.geometry(); }
  const state::DeviceMap& device_map() const { return device_map_; }
  // Updates the subgroup and gets its next version.
  DeviceId device_of(SubgroupId subgroup) const {
    return device_map_[static_cast<std::size_t>(index_of(subgroup))];
  }
  state::SlotId current(SubgroupId subgroup) const { return layout_.current(subgroup); }
  bool is_moving(SubgroupId subgroup) const {
    return layout_.device(subgroup) != device_of(subgroup);
  }
  bool moves_any() const;
  // The slot of the version that a step updates: written by the step before it, committed or not
  // yet.
  state::SlotId source_of(SubgroupId subgroup, const StepUpdate& update) const;
  // Where a variable's array begins in its device's file.
  virtual std::int64_t offset_bytes(state::SlotId slot, std::int32_t variable,
                                    std::int64_t element_count) const;
  // The last commit, and the next one while it is made.
  const state::CommitRecord& record() const { return record_; }
  const state::SubgroupVersion& version(SubgroupId subgroup) const {
    return record_.subgroups[static_cast<std::size_t>(index_of(subgroup))];
  }

  // Takes the slots of a step's next version. The step before must be committed.
  Status take_next(StepUpdate& update);
  // What the update has written becomes current, or, if it was not applied, its slots are free
  // again; `position` becomes the training position either way.
  runtime::Task<Status> commit(runtime::Runtime& runtime, const StepUpdate& update,
                               const state::TrainingPosition& position);

 protected:
  virtual Status reserve() = 0;
  virtual void add_commit_work(runtime::Operation& operation) = 0;
  virtual Status finish_commit(bool has_moved) = 0;

  state::Layout& layout_;
  state::CommitRecord record_;

 private:
  state::DeviceMap device_map_;
};

// In files, made durable by the store.
class StoredVersions final : public StateVersions {
 public:
  StoredVersions(state::StateStore& store, state::DeviceMap device_map);
  std::int64_t offset_bytes(state::SlotId slot, std::int32_t variable,
                            std::int64_t element_count) const override;

 private:
  Status reserve() override { return store_.reserve(); }
  void add_commit_work(runtime::Operation& operation) override;
  Status finish_commit(bool has_moved) override;

  state::StateStore& store_;
};

// Without payload: the layout alone.
class CountedVersions final : public StateVersions {
 public:
  using StateVersions::StateVersions;

 private:
  Status reserve() override { return ok_status(); }
  void add_commit_work(runtime::Operation& /*operation*/) override {}
  Status finish_commit(bool has_moved) override;
};

}  // namespace sluice::offload
