#pragma once
// The order in which the subgroups of a step are read, updated and written (the setting
// `pipeline`).
//
// Thread contract: the schedule's thread.

#include <functional>
#include <memory>

#include "core/offload/parameter_arrival.h"
#include "core/offload/subgroup_update.h"

namespace sluice::offload {

class UpdatePipeline {
 public:
  virtual ~UpdatePipeline() = default;
  // Spawns the step's update in update.tasks. Where the pipeline goes into the next step, it may be
  // started before update.started is set, and reads state ahead then.
  virtual void start(StepUpdate& update) = 0;
  // Whether a step may begin while the one before it is still being updated.
  virtual bool goes_into_next_step() const { return false; }
};

struct PipelineParts {
  runtime::Runtime& runtime;
  const OffloadOptions& options;
  const state::Geometry& geometry;
  SubgroupUpdate& subgroups;
  UpdateSites& sites;
  ParameterArrival& arrival;
  const IdVector<DeviceId, std::vector<SubgroupId>>& subgroups_of;  // in flat order
};

// Where devices go in step: rounds, with a subgroup of each device.
class Rounds {
 public:
  // By device; kNoSubgroup: the device has none.
  using Members = IdVector<DeviceId, SubgroupId>;
  using Run = std::function<runtime::Task<Status>(StepUpdate& update, const Members& members)>;

  explicit Rounds(const PipelineParts& parts);

  // Calls `run_round` for each round, one after the other: before the decision from the last, as
  // the gradients of all its subgroups become final (speculation.h); after it from the first, with
  // what is left. `run_round` leaves off where the step turns out to be skipped.
  runtime::Task<Status> run(StepUpdate& update, const Run& run_round);

 private:
  runtime::Task<Status> run_ahead(StepUpdate& update, const Run& run_round);
  runtime::Task<Status> gradients(StepUpdate& update, std::size_t round);
  const Members& take(StepUpdate& update, std::size_t round);

  PipelineParts parts_;
  std::size_t count_ = 0;
  Members members_;  // of the round under way
};

std::unique_ptr<UpdatePipeline> make_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_serial_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_handover_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_nbuffer_pipeline(const PipelineParts& parts);

}  // namespace sluice::offload
