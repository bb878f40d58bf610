#pragma once
// The streams of a device, and what runs on them: kernels and copies are launched by this class's
// callers or its launching thread, and whoever waits is told by a thread that asks the device's
// events. Nobody waits for a stream.
//
// Thread contract: copy() and launch() from any one thread at a time. `done` is called once, from
// the watching thread, or from the launching one where a launch failed.

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "core/model/compute_device.h"
#include "core/model/torch/compute_threads.h"
#include "core/model/torch/devices.h"

namespace sluice::model {

class DeviceStreams {
 public:
  DeviceStreams(at::Device device, ComputeThreads threads);
  // Waits for what is under way, a stuck stream for kPatienceSeconds; a stream that is stuck after
  // that, and what it works on, is left as it is.
  ~DeviceStreams();
  DeviceStreams(const DeviceStreams&) = delete;
  DeviceStreams& operator=(const DeviceStreams&) = delete;

  using Launch = std::function<void()>;

  // Calls `launch` here, with the stream of that role as the current one.
  Status copy(StreamRole role, std::string_view what, const Launch& launch, WhenDone done);
  // Has `launch` called by the launching thread, in the order of the calls, since launching a
  // layer's kernels takes long.
  void launch(StreamRole role, std::string what, Launch launch, WhenDone done);
  // For memory that is taken in another stream and used there.
  const c10::Stream& compute_stream() const {
    return streams_[static_cast<std::size_t>(StreamRole::compute)];
  }
  // Calls `launch` with compute's stream as the current one, and waits for all it launched.
  void now(const Launch& launch);

 private:
  static constexpr int kPatienceSeconds = 5;
  struct Launched {  // on a stream
    c10::Event event;
    WhenDone done;
  };
  struct Asked {
    StreamRole role;
    std::string what;
    Launch launch;
    WhenDone done;
  };
  c10::Stream& stream(StreamRole role) { return streams_[static_cast<std::size_t>(role)]; }
  void watch(StreamRole role, WhenDone done);
  void launch_all();
  void watch_all();
  bool tell_those_that_ended();
  bool is_idle() const;

  at::Device device_;
  ComputeThreads threads_;
  std::array<c10::Stream, 3> streams_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Asked> asked_;
  bool is_launching_ = false;
  std::array<std::deque<Launched>, 3> launched_;  // by role; each stream ends in order
  bool stops_ = false;

  std::thread launcher_;
  std::thread watcher_;
};

}  // namespace sluice::model
