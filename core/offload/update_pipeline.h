#pragma once
// The order in which the subgroups of a step are read, updated and written (the setting
// `pipeline`).
//
// Thread contract: the schedule's thread.

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
  const IdVector<DeviceId, std::vector<SubgroupId>>& subgroups_of;  // in order of their update

  // Where devices go in rounds, a subgroup of each: rounds, and who has a subgroup in one.
  std::size_t round_count() const;
  bool takes_part(DeviceId device, std::size_t round) const {
    return round < subgroups_of[device].size();
  }
};

std::unique_ptr<UpdatePipeline> make_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_serial_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_handover_pipeline(const PipelineParts& parts);
std::unique_ptr<UpdatePipeline> make_nbuffer_pipeline(const PipelineParts& parts);

}  // namespace sluice::offload
