#pragma once
// The work on one subgroup, on the site that updates it: read its state and its gradient, update,
// write the next version, bring the parameters up. The pipelines put these in order. The state of a
// subgroup that stays in memory is read if it is not there yet, and written by steps that commit;
// the pipelines need not know.
//
// Thread contract: the schedule's thread.

#include "core/offload/gradient_readers.h"
#include "core/offload/parameter_store.h"
#include "core/offload/update_site.h"

namespace sluice::offload {

class GradientStore;
class StateVersions;
struct StepUpdate;

class SubgroupUpdate {
 public:
  struct Parts {
    runtime::Runtime& runtime;
    const OffloadOptions& options;
    const StateVersions& versions;
    const GradientStore& gradients;
    const Drives& drives;
    UpdateSites& sites;
    StateCache& cache;
    ParameterStore& parameters;
  };
  explicit SubgroupUpdate(const Parts& parts);

  // `set`: the buffer set of the subgroup's site that it is in.
  // All variables, one subgroup of a site at a time.
  runtime::Task<Status> read_state(StepUpdate& update, SubgroupId subgroup, std::int32_t set);
  // One variable alone.
  runtime::Task<Status> read_variable(StepUpdate& update, SubgroupId subgroup,
                                      std::int32_t variable, std::int32_t set);
  runtime::Task<Status> read_gradient(StepUpdate& update, SubgroupId subgroup, std::int32_t set);
  // The subgroup is taken on: ahead of the decision, or after it, perhaps once more.
  void take(StepUpdate& update, SubgroupId subgroup);
  // Waits until the subgroup may be updated: for the decision, or for its own gradients where the
  // decision is expected to be a certain one (speculation.h).
  runtime::Task<Status> gradients(StepUpdate& update, SubgroupId subgroup);
  // Who reads a gradient before the decision of the step that has begun: pipelines say who begins,
  // and run_kernel() ends it.
  GradientReaders& readers() { return readers_; }
  // State and gradient.
  runtime::Task<Status> read_all(StepUpdate& update, SubgroupId subgroup, std::int32_t set);
  runtime::Task<Status> run_kernel(StepUpdate& update, SubgroupId subgroup, std::int32_t set);
  runtime::Task<Status> write_state(StepUpdate& update, SubgroupId subgroup, std::int32_t set);
  runtime::Task<Status> write_variable(StepUpdate& update, SubgroupId subgroup,
                                       std::int32_t variable, std::int32_t set);
  // Before a commit: the newest versions that are in memory alone, of all `subgroups`, which one
  // site updates; one after the other. `step`: the last one that has ended.
  runtime::Task<Status> write_unwritten(std::span<const SubgroupId> subgroups, std::int32_t step);
  runtime::Task<Status> parameters_up(StepUpdate& update, SubgroupId subgroup, std::int32_t set);

 private:
  bool is_written_by(const StepUpdate& update, SubgroupId subgroup, std::int32_t variable) const;
  bool has_all(SubgroupId subgroup) const;
  UpdateSite& site_of(SubgroupId subgroup) const;
  StateTransfer transfer_of(const csd::TransferLabel& label, state::SlotId slot,
                            std::int32_t variable, std::int32_t set) const;
  runtime::Task<Status> write_unwritten(SubgroupId subgroup, std::int32_t step);
  runtime::Task<Status> write_some(csd::TransferLabel label, state::SlotId slot, std::int32_t set,
                                   std::uint32_t variables);
  StateTransfer read_of(const StepUpdate& update, SubgroupId subgroup, std::int32_t variable,
                        std::int32_t set) const;
  csd::UpdateOrder order_of(const StepUpdate& update, SubgroupId subgroup) const;

  Parts parts_;
  GradientReaders readers_;
};

}  // namespace sluice::offload
