#pragma once
// The parts of a recording of sluice_record.h: a recorder, its collector, a ring for each thread
// that records, and the step under way.
//
// Thread contract: every function from any thread.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "profiler/c_api/declarations.h"
#include "profiler/collect/collector.h"
#include "profiler/record/recorder.h"

namespace sluice::c_api {

struct StartOptions {
  double cost_share_max = 0.1;        // CollectorOptions
  void (*thread_begins)() = nullptr;  // the same
  std::string mode = "recorded by another program";
  std::string recording = {};  // of meta's rundb::kRecordedTogether; "": alone
};

class RecordingState {
 public:
  static Result<std::shared_ptr<RecordingState>> start(const std::string& path,
                                                       const std::string& name, record::Level level,
                                                       const StartOptions& options = {});

  record::Recorder& recorder() { return recorder_; }
  collect::Collector& collector() { return *collector_; }
  // A parent that this recording never gave out is taken as none.
  record::TrackId add_track(record::TrackId parent, const char* kind, const std::string& name);
  record::NameId intern(const std::string& text);
  // Spans of the track carry the device, and their bytes cross its link and this one; either -1.
  Result<record::TrackId> add_transfer_track(record::TrackId parent, const std::string& name,
                                             std::int32_t device, std::int32_t link,
                                             record::LinkDirection direction);
  Declarations& declarations() { return declarations_; }
  std::uint64_t lost_count() const;

  // Into the calling thread's ring; rings of threads that have ended are used again. `self` is
  // this. A track or name that was never given out would be a hole in the file: the record is
  // dropped.
  record::SpanRef push_span(const std::shared_ptr<RecordingState>& self,
                            const record::SpanRecord& span);
  void push(const std::shared_ptr<RecordingState>& self, const record::CounterRecord& counter);
  void push(const std::shared_ptr<RecordingState>& self, const record::FlowRecord& flow);

  // Around a fork, by the thread that forks: no other thread holds a lock of the recording's, so
  // that the child can end its threads and give back their rings.
  void hold_for_fork() NO_THREAD_SAFETY_ANALYSIS;
  void release_after_fork() NO_THREAD_SAFETY_ANALYSIS;

  std::int32_t step() const { return step_.load(std::memory_order_relaxed); }
  void begin_step(std::int32_t number);
  // With its number and times.
  void end_step(const std::shared_ptr<RecordingState>& self, record::StepRecord step,
                std::int64_t end_ns = monotonic_now_ns());

 private:
  friend class ThreadRings;
  RecordingState();
  record::Ring& ring(const std::shared_ptr<RecordingState>& self);
  record::Ring& take_ring();
  void give_back(record::Ring& ring);
  bool is_known(record::TrackId track) const {
    return static_cast<std::uint32_t>(track) < track_count_.load(std::memory_order_acquire);
  }
  bool is_known(record::NameId name) const {
    return static_cast<std::uint32_t>(name) < name_count_.load(std::memory_order_acquire);
  }

  const std::uint64_t id_;
  record::Recorder recorder_;
  std::unique_ptr<collect::Collector> collector_;
  Declarations declarations_;
  std::atomic<std::int32_t> step_{-1};
  std::atomic<std::int64_t> step_ts_{0};
  std::atomic<std::uint32_t> track_count_{0};
  std::atomic<std::uint32_t> name_count_{0};
  std::atomic<std::uint64_t> refused_count_{0};
  Mutex mutex_;
  std::vector<record::Ring*> free_rings_ GUARDED_BY(mutex_);  // of threads that have ended
};

}  // namespace sluice::c_api
