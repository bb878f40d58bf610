#pragma once
// A span from here to the end of the block:
//
//   const record::ScopedSpan span(recorder, ring, {.name = checkpoint, .track = main_thread});
//
// Below its level it costs one relaxed load and a branch. Times are of CLOCK_MONOTONIC.
//
// Thread contract: the ring's producer thread.

#include <chrono>
#include <optional>

#include "profiler/record/recorder.h"

namespace sluice::record {

inline std::int64_t span_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class ScopedSpan {
 public:
  // `record` says all but the times.
  ScopedSpan(const Recorder& recorder, Ring& ring, const SpanRecord& record,
             Level from = Level::transfers) noexcept
      : ring_(ring) {
    if (recorder.level() < from) return;
    record_ = record;
    record_->submit_ts = record_->ts = span_now_ns();
  }
  ~ScopedSpan() {
    if (!record_) return;
    record_->dur = span_now_ns() - record_->ts;
    ring_.try_push(*record_);
  }
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

  void set_bytes(std::int64_t bytes) {
    if (record_) record_->bytes = bytes;
  }

 private:
  Ring& ring_;
  std::optional<SpanRecord> record_;  // none below its level: then there is nothing to fill in
};

}  // namespace sluice::record
