#pragma once
// A run that is open: its clock, the memory that it has taken, its state, its devices and the
// offload on them. It knows neither a model nor a text nor other ranks: whoever has these
// (core/train/training_run.h) computes gradients and runs the schedule on it.
//
// The order in which it is made: open() takes all memory and touches no file; state() is created or
// opened; attach() makes the offload ready; begin() or load_parameters() brings the first
// parameters.
//
// Thread contract: the thread that opens it is the schedule's.

#include <functional>
#include <memory>
#include <string>

#include "core/csd/device_factory.h"
#include "core/offload/assembly.h"
#include "core/plan/run_plan.h"
#include "core/session/run_clock.h"
#include "core/session/run_memory.h"
#include "core/session/run_state.h"

namespace sluice::session {

class OpenRun {
 public:
  struct Request {
    plan::RunPlan plan;
    RunMemory memory;
    // The recipe that the state to go on with was made with (RunState).
    std::optional<RecipeHistory> history = {};
    std::shared_ptr<io::PinnedMemory> pinned_memory;  // null: plain memory
    // Null: nothing is recorded.
    record::Recorder* recorder = nullptr;
    // The devices of method=csd; null: emulated ones.
    csd::DeviceFactory* devices = nullptr;
    // Until other ranks have made a step's commit durable; empty: there are none.
    std::function<runtime::Operation(runtime::Runtime& runtime, std::int32_t step)>
        committed_elsewhere = {};
    WrapEngine wrap_engine = {};
  };
  static Result<std::unique_ptr<OpenRun>> open(Request request);

  const plan::RunPlan& plan() const { return request_.plan; }
  const RunMemory& memory() const { return request_.memory; }
  // The description of the devices of method=csd.
  std::string device_description() const { return request_.devices->description(); }
  io::PinnedMemory& pinned_memory() const { return *request_.pinned_memory; }
  RunClock& clock() { return *clock_; }
  runtime::Runtime& runtime() { return clock_->runtime(); }
  RunState& state() { return state_; }
  // False after a change of knobs that failed halfway: nothing can follow.
  bool has_offload() const { return assembly_ != nullptr; }
  offload::Assembly& assembly() { return *assembly_; }
  offload::Offload& offload() { return assembly_->offload(); }
  // Those of the whole model, and this rank's part of them.
  ParameterSpan parameters();
  ParameterSpan parameter_part();

  // The state is open: the offload is ready then.
  Status attach();
  // A new state's first version and commit; ends early if `stops` says so.
  Status begin(const Recipe& recipe, const offload::FillInitial& fill,
               const state::TrainingPosition& position, const Stops& stops);
  // The parameters from the last commit; ends early if `stops` says so.
  Status load_parameters(const Stops& stops);

  // Between two steps: waits until nothing of the last one is under way; and commits what is not
  // committed yet.
  Status settle();
  Status commit();

  // Other knobs, between two steps that are committed: on the offload that there is
  // (!plan::needs_new_offload); or on a new one, where the old one is gone before `between` is
  // called and the new one is attached after it. An error ends the run.
  void turn(const plan::PlannedKnobs& planned);
  Status apply(const plan::PlannedKnobs& planned, const std::function<Status()>& between);

 private:
  explicit OpenRun(Request request);
  Status take_memory();
  Status take_offload();
  void set_plan(const plan::PlannedKnobs& planned);
  void set_level(record::Level before);

  Request request_;
  csd::EmulatedFactory emulated_devices_{csd::Payload::real};
  RunState state_;
  io::PinnedBuffer parameters_;
  io::PinnedBuffer parameter_part_;  // where layers are gathered
  std::optional<RunClock> clock_;
  std::unique_ptr<offload::Assembly> assembly_;
};

}  // namespace sluice::session
