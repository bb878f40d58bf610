#pragma once
// Numbers over time that follow from what passes the runtime: transfers under way and buffers in
// use by device, bytes in flight by link and direction, the memory that was taken, activations that
// are alive by tier, and how long they were waited for. They are
// kept as operations come and go, without asking anybody, and written as counters at level `all`.
//
// A sample is exact: at its time the number was its value. A value that held for less than
// kShortestNs may have no sample, so that a counter has at most ten thousand a second, however fast
// the drives are. A sample is written when the next value begins, and at a step's end at the
// latest.
//
// Thread contract: made before the run; called on the owner thread, whose ring it is. Allocates
// when it is made, and when activations are first told of.

#include <array>
#include <span>
#include <vector>

#include "base/id_vector.h"
#include "core/platform/platform.h"
#include "core/runtime/operation.h"
#include "profiler/record/recorder.h"

namespace sluice::runtime {

class RunCounters {
 public:
  static constexpr TimeNs kShortestNs = 100'000;

  // Tracks that the counters stand under; links get their own.
  struct Tracks {
    record::TrackId compute;
    record::TrackId host;
    std::span<const record::TrackId> devices;
    record::TrackId accelerator = record::kNoTrack;  // the first; kNoTrack: none
  };
  RunCounters(record::Recorder& recorder, record::Ring& ring, const platform::Platform& platform,
              const Tracks& tracks);

  // A transfer is under way from when it was asked for until it ended: what waits for its link is
  // among them.
  void on_submit(const OperationState& state) { move(state, 1, state.submit_ns); }
  void on_finish(const OperationState& state) { move(state, -1, state.end_ns); }
  void on_buffers(DeviceId device, std::int32_t in_use, TimeNs now_ns);
  void on_memory(std::int64_t host_bytes, std::span<const std::int64_t> device_bytes,
                 TimeNs now_ns);
  void on_accelerator_memory(std::int64_t used_bytes, TimeNs now_ns);
  // Sums since this was made.
  void on_activation_wait(const stages::ActivationWaited& waited);
  void on_activation_bytes(stages::ActivationTier tier, std::int64_t size_bytes, TimeNs now_ns);

  // A value without a sample yet gets one, however short it has held.
  void write_pending();

 private:
  struct Counter {
    record::TrackId track = record::kNoTrack;  // kNoTrack: it has nothing to say yet
    std::int64_t value = 0;
    TimeNs since_ns = 0;
    std::int64_t written_value = -1;  // of the last sample; none of them is ever negative
    bool is_written = false;
  };
  struct Device {
    std::array<Counter, 2> transfers;  // by platform::Direction
    Counter buffers;
    Counter memory_bytes;
  };
  using LinkBytes = std::array<Counter, 2>;

  void move(const OperationState& state, std::int64_t sign, TimeNs now_ns);
  void begin(Counter& counter, const char* name, TimeNs now_ns);
  void set(Counter& counter, std::int64_t value, TimeNs now_ns);
  void write(Counter& counter);
  void follow_level(TimeNs now_ns);
  template <typename Visit>
  void for_each(Visit&& visit);

  record::Recorder& recorder_;
  record::Ring& ring_;
  bool is_on_ = false;  // at level `all`, when it was last looked at
  IdVector<DeviceId, Device> devices_;
  IdVector<platform::LinkId, LinkBytes> links_;
  record::TrackId compute_;
  Counter host_bytes_;
  Counter accelerator_bytes_;  // without a track where there is no accelerator
  // A run in which they have nothing to say does not have them.
  std::array<Counter, stages::kActivationWaitCount> activation_waits_;
  std::array<Counter, stages::kActivationTierCount> activation_bytes_;
};

}  // namespace sluice::runtime
