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

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/parameter_span.h"
#include "base/stops.h"
#include "core/offload/fill_initial.h"
#include "core/session/recipe.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::csd {
class DeviceFactory;
}
namespace sluice::offload {
class Assembly;
class Offload;
struct ResidualPlace;
}  // namespace sluice::offload
namespace sluice::plan {
struct PlannedKnobs;
struct RunPlan;
}  // namespace sluice::plan
namespace sluice::record {
enum class Level : std::uint8_t;
}
namespace sluice::runtime {
class Runtime;
}
namespace sluice::state {
struct TrainingPosition;
}

namespace sluice::session {

struct OpenRunRequest;
class RunClock;
struct RunMemory;
class RunState;

class OpenRun {
 public:
  static Result<std::unique_ptr<OpenRun>> open(OpenRunRequest request);
  ~OpenRun();

  const plan::RunPlan& plan() const;
  const RunMemory& memory() const;
  // The description of the devices of method=csd.
  std::string device_description() const;
  io::PinnedMemory& pinned_memory() const;
  RunClock& clock() { return *clock_; }
  runtime::Runtime& runtime();
  RunState& state() { return *state_; }
  // False after a change of knobs that failed halfway: nothing can follow.
  bool has_offload() const { return assembly_ != nullptr; }
  offload::Assembly& assembly() { return *assembly_; }
  offload::Offload& offload();
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
  explicit OpenRun(OpenRunRequest request);
  Status take_memory();
  Status take_offload();
  void set_plan(const plan::PlannedKnobs& planned);
  void set_level(record::Level before);

  std::unique_ptr<OpenRunRequest> request_;
  std::unique_ptr<csd::DeviceFactory> emulated_devices_;  // null: the request has others
  std::unique_ptr<RunState> state_;
  io::PinnedBuffer parameters_;
  io::PinnedBuffer parameter_part_;  // where layers are gathered
  std::unique_ptr<RunClock> clock_;
  std::unique_ptr<offload::Assembly> assembly_;
};

// The residual of error feedback, where it is in memory; else one with nothing in it.
offload::ResidualPlace residual_of(OpenRun& run);

}  // namespace sluice::session
