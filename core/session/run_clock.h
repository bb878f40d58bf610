#pragma once
// Where a run's operations happen: an I/O engine, workers, a clock (real or emulated), and the
// sinks that count and record.
//
// Thread contract: the schedule's thread.

#include <memory>

#include "core/runtime/runtime.h"
#include "core/session/run_observer.h"
#include "core/session/wrap_engine.h"
#include "core/settings/run_config.h"

namespace sluice::record {
class Recorder;
}
namespace sluice::runtime {
class ByteCounters;
class EmulatedClock;
class RecordingSink;
class WorkExecutor;
}  // namespace sluice::runtime

namespace sluice::session {

class RunClock {
 public:
  // The platform and the recorder outlive it. `recorder` null: nothing is recorded.
  static Result<RunClock> open(const settings::RunConfig& config,
                               const platform::Platform& platform, record::Recorder* recorder,
                               const WrapEngine& wrap_engine);

  RunClock(RunClock&&) noexcept;
  RunClock& operator=(RunClock&&) noexcept;
  ~RunClock();

  runtime::Runtime& runtime() { return *runtime_; }
  runtime::ByteCounters& bytes() { return *bytes_; }
  runtime::RecordingSink* recording() const { return recording_.get(); }
  // Null under another clock.
  const runtime::EmulatedClock* emulated() const { return emulated_; }

  // In the record, where there is one: a step that began at `start_ns`.
  void record_step(const StepReport& step, TimeNs start_ns);

  void set_lanes(const settings::StorageConfig& storage);
  // Host and device memory that transfers use; without it they go on as they are, and a warning
  // says why.
  void register_buffers(std::span<const std::span<std::byte>> regions);

 private:
  RunClock();

  io::IoEngine* engine_ = nullptr;  // the runtime's, as are the next two
  runtime::WorkExecutor* executor_ = nullptr;
  const runtime::EmulatedClock* emulated_ = nullptr;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<runtime::ByteCounters> bytes_;
  std::unique_ptr<runtime::RecordingSink> recording_;
};

}  // namespace sluice::session
