#pragma once
// The optimizer state of a run, on devices: gradients go down layer by layer while backward runs,
// each subgroup is read, updated and written in the order that `pipeline` says, parameters come
// back, and every commit_every steps a commit makes the newest version durable. This is the front;
// its rooms are
//
//   step_update.h      all state of one step's update
//   step_gradients.h   gradients down, dense or sparse, and what is known of them
//   update_site.h      where subgroups are updated: the host, or a CSD
//   subgroup_update.h  one subgroup on its site
//   speculation.h      what of an update comes before the decision (overlap=exact)
//   update_pipeline.h  in which order: serial, handover, nbuffer
//   state_versions.h   which version is the newest, and how it is committed
//   state_cache.h      whose state stays in memory between steps
//   initial_state.h    before the first step
//   parameter_carrier.h  layers' parameters, to where they are computed with
//   base_parameters.h  those that are not trained, where they lie on the drives
//
// A step, in order (core/train/training_step.cpp):
//   begin_step(step, ...)   from here on state may be read ahead (prefetch)
//   source().bring(layer)   before the layer's forward, and before its backward
//   gradients().send(layer)    once a layer, from the last to the first
//   gradients().sent()      all of them are on the drives; norm and overflow are known
//   update(decision)        every subgroup updated, parameters in place; or all skipped
//   end_step(position)      when all is written; commits if the step's number says so
//
// With pipeline=nbuffer neither update() nor end_step() waits: subgroups are updated and written
// while the next step's forward follows their parameters up, layer by layer; its backward runs
// beside the last writes. A subgroup's state is read for the next update as soon as it is written
// and a buffer is free; that update waits for the commit. settle() waits for all of it, and
// commit() makes what has ended durable, whatever the step's number.
//
// Thread contract: the schedule's thread.

#include <memory>
#include <span>

#include "base/parameter_span.h"
#include "base/stops.h"
#include "core/offload/fill_initial.h"
#include "core/offload/step_decision.h"
#include "core/offload/update_sites.h"
#include "core/runtime/task.h"

namespace sluice::model {
struct FlatLayout;
}
namespace sluice::runtime {
class Runtime;
}
namespace sluice::state {
struct TrainingPosition;
}

namespace sluice::offload {

struct BaseCut;
class BufferPool;
class GradientFormat;
class HostKernels;
class OffloadMemory;
struct OffloadOptions;
class ParameterArrival;
class ParameterCarrier;
class ParameterSource;
class Speculation;
class StateCache;
class StateVersions;
class StepGradients;
struct StepUpdate;

class Offload {
 public:
  struct Parts {
    runtime::Runtime& runtime;
    const model::FlatLayout& layout;
    const OffloadOptions& options;
    const HostKernels& kernels;
    const GradientFormat& format;
    OffloadMemory& memory;
    BufferPool& bounces;
    const Drives& drives;
    UpdateSites& sites;
    StateVersions& versions;
    StateCache& cache;
    ParameterSpan parameters;  // empty: no payload
    const BaseCut* base = nullptr;
    ParameterSpan base_parameters = {};
  };
  explicit Offload(const Parts& parts);
  ~Offload();

  // Writing or loading before the first step ends early if `stops` says so; {}: no more.
  void end_if(Stops stops);
  // Before the first step: writes and commits a new state, or loads the parameters from one; with
  // parameter_tier=storage also after a change of the offload, whose files are new.
  runtime::Task<Status> create_state(const FillInitial& fill,
                                     const state::TrainingPosition& position);
  runtime::Task<Status> load_parameters();
  // Where a base lies on the drives: all of it to them, before anything is brought.
  runtime::Task<Status> write_base(const FillInitial& fill, const Stops& stops);

  // `loss_scale`: that of the gradients to come. `ahead`: what the decision will nearly surely be,
  // with overlap=exact, which is used right after a commit; or, with overlap=local always, what the
  // subgroups are clipped by.
  void begin_step(std::int32_t step, double loss_scale, const UpdateAhead& ahead = {});
  // Brings the layers' parameters of the last update.
  ParameterCarrier& parameters();
  // The same with the layers' base weights, where these lie on the drives.
  ParameterSource& source();
  // Those of a layer that come so.
  std::int64_t base_bytes(LayerId layer) const;
  const ParameterArrival& arrival() const;
  // Those of the step that has begun.
  StepGradients& gradients();
  // overlap=exact: gradients of the step under way that are down are about to be replaced
  // (StepGradients::send_again). Waits until no update ahead reads any; there is none any more
  // before the decision, which refutes those that there were.
  runtime::Task<Status> halt_ahead();
  // Where they are not finite and no step can be skipped: waits for the step before to be
  // committed, if it was to be, and fails with ErrorCode::diverged; with overlap=local it names the
  // layer and the subgroup.
  runtime::Task<Status> refuse_step();
  // The subgroups of the step under way that were updated before its decision; after update().
  const Speculation& speculation() const;
  runtime::Task<Status> update(const StepDecision& decision);
  runtime::Task<Status> end_step(const state::TrainingPosition& position);
  // Waits for what the last step has left to do, its commit too if it has one.
  runtime::Task<Status> settle();
  // Between two steps: settles, and commits what is not committed yet.
  runtime::Task<Status> commit();
  // After a failure: waits until nothing of the step is left, so that buffers and files may go.
  runtime::Task<Status> drain();

  const OffloadOptions& options() const { return parts_.options; }

 private:
  struct Rooms;

  runtime::Task<Status> skip(StepUpdate& update);
  runtime::Task<Status> start_update(StepUpdate& update, bool reads_ahead);
  runtime::Task<Status> finish_step(state::TrainingPosition position, StepUpdate& update);
  runtime::Task<Status> close_step(const state::TrainingPosition& position, StepUpdate& update);
  runtime::Task<Status> make_durable(std::int32_t step);
  StepUpdate& this_update();

  Parts parts_;
  std::unique_ptr<Rooms> rooms_;
  std::size_t this_ = 0;  // the update of the step under way
};

}  // namespace sluice::offload
