#include "core/model/torch/device_streams.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "core/model/torch/planted.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

// Between two looks at events that have not come: short beside a layer, long beside a query.
constexpr auto kBetweenLooks = std::chrono::microseconds(30);

constexpr std::array<const char*, 3> kRoleNames = {"compute", "in", "out"};  // of StreamRole

std::array<c10::Stream, 3> new_streams(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  std::array<c10::Stream, 3> streams = {guard.getNewStream(device), guard.getNewStream(device),
                                        guard.getNewStream(device)};
  // Work on it is work whose stream was forgotten.
  name_stream(device, guard.getDefaultStream(device).id(), "default");
  for (std::size_t role = 0; role < streams.size(); ++role)
    name_stream(device, streams[role].id(), kRoleNames[role]);
  return streams;
}

std::string_view event_mistake(StreamRole role) {
  constexpr std::array<std::string_view, 3> kMistakes = {"no event of compute", "no event of in",
                                                         "no event of out"};
  return kMistakes[static_cast<std::size_t>(role)];
}

std::string_view guard_mistake(StreamRole role) {
  constexpr std::array<std::string_view, 3> kMistakes = {
      "no stream guard of compute", "no stream guard of in", "no stream guard of out"};
  return kMistakes[static_cast<std::size_t>(role)];
}

// The stream is the current one of this thread.
class OnStream {
 public:
  OnStream(c10::Stream stream, StreamRole role) {
    if (!is_planted(guard_mistake(role))) guard_.emplace(stream);
  }

 private:
  std::optional<c10::StreamGuard> guard_;
};

}  // namespace

DeviceStreams::DeviceStreams(at::Device device, ComputeThreads threads)
    : device_(device),
      threads_(threads),
      streams_(new_streams(device)),
      launcher_([this] { launch_all(); }),
      watcher_([this] { watch_all(); }) {}

DeviceStreams::~DeviceStreams() {
  {
    std::unique_lock lock(mutex_);
    const auto patience =
        std::chrono::seconds(is_planted("no wait at the end") ? 0 : kPatienceSeconds);
    changed_.wait_for(lock, patience, [this] { return is_idle(); });
    stops_ = true;
  }
  changed_.notify_all();
  launcher_.join();
  watcher_.join();
}

bool DeviceStreams::is_idle() const {
  for (const std::deque<Launched>& of_stream : launched_)
    if (!of_stream.empty()) return false;
  return asked_.empty() && !is_launching_;
}

Status DeviceStreams::copy(StreamRole role, std::string_view what, const Launch& launch,
                           WhenDone done) {
  return at_torch_border(what, [&]() -> Status {
    const OnStream guard(stream(role), role);
    launch();
    watch(role, std::move(done));
    return ok_status();
  });
}

void DeviceStreams::launch(StreamRole role, std::string what, Launch launch, WhenDone done) {
  {
    const std::lock_guard lock(mutex_);
    asked_.push_back({role, std::move(what), std::move(launch), std::move(done)});
  }
  changed_.notify_all();
}

void DeviceStreams::now(const Launch& launch) {
  threads_.apply();
  const c10::StreamGuard guard(stream(StreamRole::compute));
  launch();
  if (!is_planted("no wait for memory")) stream(StreamRole::compute).synchronize();
}

void DeviceStreams::watch(StreamRole role, WhenDone done) {
  Launched launched{c10::Event(device_.type()), std::move(done)};
  if (!is_planted(event_mistake(role))) launched.event.record(stream(role));
  {
    const std::lock_guard lock(mutex_);
    launched_[static_cast<std::size_t>(role)].push_back(std::move(launched));
  }
  changed_.notify_all();
}

void DeviceStreams::launch_all() {
  threads_.apply();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stops_ || !asked_.empty(); });
    if (asked_.empty()) return;
    Asked next = std::move(asked_.front());
    asked_.pop_front();
    is_launching_ = true;
    lock.unlock();
    const Status launched = copy(next.role, next.what, next.launch, next.done);
    if (!launched.ok()) next.done(launched);
    lock.lock();
    is_launching_ = false;
    changed_.notify_all();
  }
}

void DeviceStreams::watch_all() {
  const auto has_launched = [this] {
    return std::ranges::any_of(launched_, [](const auto& of_stream) { return !of_stream.empty(); });
  };
  std::unique_lock lock(mutex_);
  while (!stops_) {
    changed_.wait(lock, [&] { return stops_ || has_launched(); });
    if (stops_) return;
    lock.unlock();
    if (!tell_those_that_ended()) std::this_thread::sleep_for(kBetweenLooks);
    lock.lock();
    changed_.notify_all();
  }
}

// Only this thread takes from the front, so what is there stays there without the lock.
bool DeviceStreams::tell_those_that_ended() {
  bool told = false;
  for (std::deque<Launched>& of_stream : launched_) {
    while (true) {
      Launched* first = nullptr;
      {
        const std::lock_guard lock(mutex_);
        if (!of_stream.empty()) first = &of_stream.front();
      }
      if (first == nullptr) break;
      bool has_ended = true;
      const Status status = at_torch_border("asking an event", [&]() -> Status {
        has_ended = first->event.query();
        return ok_status();
      });
      if (!has_ended) break;
      first->done(status);
      told = true;
      const std::lock_guard lock(mutex_);
      of_stream.pop_front();
    }
  }
  return told;
}

}  // namespace sluice::model
