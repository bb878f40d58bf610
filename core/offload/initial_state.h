#pragma once
// Before the first step: write a new state, or read the parameters out of a committed one. Both go
// through bounce buffers, subgroup by subgroup, so that no part of the state is in memory as a
// whole. With parameter_tier=storage they go to the drives in place of memory. A step that is
// skipped after some of it was updated reads these subgroups once more.
//
// Thread contract: the schedule's thread; `fill` is called on workers, one subgroup at a time each.

#include "base/stops.h"
#include "core/offload/fill_initial.h"
#include "core/offload/parameter_store.h"
#include "core/offload/update_site.h"

namespace sluice::offload {

class SplitPieces;
class StateVersions;
struct StepUpdate;
class StretchSums;

class InitialState {
 public:
  struct Parts {
    const OffloadOptions& options;
    const StateVersions& versions;
    const HostKernels& kernels;
    const Drives& drives;
    BufferPool& bounces;
    ParameterSpan parameters;
    ParameterStore& parameter_store;
    const IdVector<DeviceId, std::vector<SubgroupId>>& subgroups_of;
  };
  explicit InitialState(const Parts& parts) : parts_(parts) {}

  // Asked before each bounce buffer's worth, by the schedule's thread; where it says so, what
  // follows ends with ErrorCode::cancelled.
  void end_if(Stops stops) { stops_ = std::move(stops); }

  // Every subgroup's first version into its current slot; `update` gets slots and checksums, for
  // the commit.
  runtime::Task<Status> create(const FillInitial& fill, StepUpdate& update);
  // Errors: ErrorCode::corrupt where master weights are not those of the commit.
  runtime::Task<Status> load();
  // The same of some subgroups of a step, which live until awaited; one at a time of a device.
  runtime::Task<Status> load(const std::vector<SubgroupId>& subgroups);

 private:
  // A device's subgroups in order, of which kAtOnce are under way.
  struct Queue {
    const std::vector<SubgroupId>& subgroups;
    std::size_t next = 0;

    bool is_empty() const { return next == subgroups.size(); }
    SubgroupId take() { return subgroups[next++]; }
  };

  runtime::Task<Status> create_on(DeviceId device, const FillInitial& fill, StepUpdate& update);
  runtime::Task<Status> create_queued(Queue& queue, const FillInitial& fill, StepUpdate& update);
  runtime::Task<Status> create_fp32(SubgroupId subgroup, const FillInitial& fill,
                                    StepUpdate& update);
  runtime::Task<Status> create_split(SubgroupId subgroup, const FillInitial& fill,
                                     StepUpdate& update);
  runtime::Task<Status> write_pieces(SubgroupId subgroup, SplitPieces& pieces, bool is_last);
  runtime::Task<Status> load_of(DeviceId device, const std::vector<SubgroupId>& subgroups,
                                int at_once);
  runtime::Task<Status> load_queued(DeviceId device, Queue& queue);
  runtime::Task<Status> load_subgroup(SubgroupId subgroup);
  csd::HostTransfer chunk(SubgroupId subgroup, std::int32_t variable, std::int64_t first,
                          std::span<std::byte> bounce) const;
  runtime::Task<Status> keep_parameters(SubgroupId subgroup, std::int64_t first, std::int64_t count,
                                        std::span<std::byte> bounce, StretchSums& sums);
  void take_copy(std::span<const std::byte> copy, std::int64_t local_first,
                 StretchSums& sums) const;
  runtime::Operation write_copy(SubgroupId subgroup, csd::HostTransfer transfer) const;
  std::int64_t offset_bytes(SubgroupId subgroup, std::int32_t variable) const;
  std::int64_t chunk_elements() const;
  bool is_split() const;

  Parts parts_;
  Stops stops_;
};

}  // namespace sluice::offload
