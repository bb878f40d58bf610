#pragma once
// The work of a program that computes its gradients itself, in the record of its run: through a
// ring of its own, beside that of the schedule. Forward and backward are on the schedule's tracks,
// so that causes and phases count them as a run's own; modules are on tracks below, one for each
// depth, and take no share.
//
// Thread contract: every function from any thread.

#include <atomic>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/mutex.h"
#include "base/units.h"
#include "core/session/session.h"
#include "profiler/record/recorder.h"

namespace sluice::session {

class ProgramRecording {
 public:
  // Null: nothing is recorded. It outlives this.
  explicit ProgramRecording(record::Recorder* recorder);

  // `step`, which it belongs to, counts from 0.
  void record(const WorkSpan& span, LayerId layer, std::int32_t step);
  void count(std::string_view name, double value);
  // When the last forward ended; 0: none has.
  TimeNs forward_end_ns() const { return forward_end_ns_.load(); }

 private:
  record::TrackId module_track(int depth) REQUIRES(mutex_);

  record::Recorder* const recorder_;
  record::TrackId compute_{};
  record::TrackId host_{};
  std::atomic<TimeNs> forward_end_ns_{0};
  Mutex mutex_;  // makes several threads one producer
  record::Ring* ring_ GUARDED_BY(mutex_) = nullptr;
  std::vector<record::TrackId> modules_ GUARDED_BY(mutex_);  // by depth
};

}  // namespace sluice::session
