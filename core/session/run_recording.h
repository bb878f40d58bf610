#pragma once
// The recording of a run, from before its devices are opened to after its last step: the recorder,
// the GPU's own activity where it is asked for, the database and the collector that fills it.
//
// Thread contract: the schedule's thread, but for set_watched() and program() (any).

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/launch_region.h"
#include "core/session/run_facts.h"
#include "core/session/start_from.h"
#include "profiler/record/recorder.h"

namespace sluice::runtime {
class EmulatedClock;
}

namespace sluice::sample {
class HostSampler;
}

namespace sluice::session {

class GpuRecording;
class LatenessRecorder;
class OpenRun;
class ProgramRecording;
class RunRecorder;
struct RunHooks;

class RunRecording {
 public:
  // Before a device is opened, and before threads are begun that are to be sampled. With record=off
  // nothing is recorded and everything below does nothing. Errors: those of the database's path,
  // sample::HostSampler::open()'s where the run asks for samples.
  static Result<std::unique_ptr<RunRecording>> prepare(const settings::RunConfig& config);
  ~RunRecording();

  record::Recorder* recorder() { return is_on_ ? &recorder_ : nullptr; }
  // What a program of its own does: for any thread.
  ProgramRecording& program() { return *program_; }
  // Around each launch on a GPU; empty: nobody wants to know.
  model::LaunchRegion launch_region();

  struct Facts {
    StartFrom start = StartFrom::new_state;
    RunHardware hardware = {};
    std::vector<rundb::MetaRow> meta = {};  // more of table `meta`
  };
  // The run's state is open. A new run gets a new database; a resumed one goes on with its own.
  // Errors: ErrorCode::corrupt, and others of the database.
  Status open(OpenRun& run, const Facts& facts);
  // Who is told how the run goes, for the record; right before the first step, from which on the
  // emulated clock's lateness counts.
  void add_observers(RunHooks& hooks);
  // Null: nothing is recorded.
  collect::Collector* collector() { return collector_.get(); }
  // Somebody follows the run, so the database is to be close behind it.
  void set_watched(bool watched);
  // After the last step, while the run is open.
  void record_rest();
  // Closes the database, with a verdict for each step; a failure is a warning.
  void close();

 private:
  explicit RunRecording(const settings::RunConfig& config);

  bool is_on_;
  std::string database_;
  record::Recorder recorder_;
  std::unique_ptr<ProgramRecording> program_;
  std::unique_ptr<GpuRecording> gpu_;             // null: none
  std::unique_ptr<sample::HostSampler> sampler_;  // null: none
  std::unique_ptr<collect::Collector> collector_;
  std::int64_t first_step_ = 0;
  const runtime::EmulatedClock* emulated_ = nullptr;  // null: another clock
  std::unique_ptr<RunRecorder> changes_;
  std::unique_ptr<LatenessRecorder> lateness_;
};

}  // namespace sluice::session
