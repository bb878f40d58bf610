#pragma once
// The versions of the optimizer state as a step sees them: which slot holds a subgroup's newest
// one, which device updates it and gets the next, and how the newest is committed. Two kinds:
// stored in files, and only counted, where there is no payload.
//
// With commit_every above 1 a version is whole long before it is committed. The first step after a
// commit reads the committed slots and writes each subgroup's other one, the working slot; the
// steps up to the next commit read and write the working slots in place. No step but a commit
// touches what a crash would go back to.
//
// Where the device map gives a subgroup to another device than its state lies on, its next update
// reads the state there and writes the next version here: it has moved with that commit, and
// nothing was transferred for it alone.
//
// Thread contract: the schedule's thread; the commit's work runs on a worker while the owner only
// reads.

#include <functional>
#include <memory>

#include "core/runtime/operation.h"
#include "core/runtime/task.h"
#include "storage/state/state_store.h"

namespace sluice::offload {

struct StepUpdate;

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
  state::SlotId committed(SubgroupId subgroup) const { return layout_.current(subgroup); }
  // The version that the last step which has ended left: the working slot, or the committed one.
  state::SlotId newest(SubgroupId subgroup) const {
    return has_working_ ? layout_.next(subgroup) : layout_.current(subgroup);
  }
  // Whether a subgroup's newest version lies on another device than the one that updates it.
  bool moves_any() const;
  // The slot of the version that a step updates: written by the step before it, which may not have
  // ended yet.
  state::SlotId source_of(SubgroupId subgroup, const StepUpdate& update) const;
  // Where a variable's array begins in its device's file.
  virtual std::int64_t offset_bytes(state::SlotId slot, std::int32_t variable,
                                    std::int64_t element_count) const;
  // The record of the next commit: the position after the last step that has ended, and the newest
  // versions.
  const state::CommitRecord& record() const { return record_; }
  const state::SubgroupVersion& version(SubgroupId subgroup) const {
    return record_.subgroups[static_cast<std::size_t>(index_of(subgroup))];
  }

  // Steps that the last commit has.
  std::int64_t committed_step() const { return committed_step_; }

  // Takes the slots of a step's next version. The step before must have ended.
  Status take_next(StepUpdate& update);
  // The version that the update has written is the newest, or, if it was not applied,
  // nothing has changed; `position` becomes the training position either way. Not durable yet.
  void end_step(const StepUpdate& update, const state::TrainingPosition& position);
  // Whether a step has ended since the last commit.
  bool has_uncommitted() const { return has_uncommitted_; }
  // The event that a commit waits for before the version that it replaces may be written over: that
  // the other ranks of the run have made theirs durable, too.
  using CommittedElsewhere = std::function<runtime::Operation(std::int32_t step)>;
  void commit_with(CommittedElsewhere committed) { committed_elsewhere_ = std::move(committed); }
  // The newest versions and the position become durable. `step`: the last one that has ended.
  runtime::Task<Status> commit(runtime::Runtime& runtime, std::int32_t step);

 protected:
  virtual Status reserve() = 0;
  virtual void add_commit_work(runtime::Operation& operation) = 0;
  virtual Status finish_commit(bool has_moved) = 0;

  state::Layout& layout_;
  state::CommitRecord record_;
  std::int64_t committed_step_ = 0;

 private:
  bool leaves_any() const;

  state::DeviceMap device_map_;
  CommittedElsewhere committed_elsewhere_;  // empty: there are no others
  bool has_working_ = false;                // the newest versions are in the working slots
  bool has_uncommitted_ = false;
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
