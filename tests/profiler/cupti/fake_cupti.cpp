#include "tests/profiler/cupti/fake_cupti.h"

#include <time.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "tests/profiler/cupti/made_activities.h"

namespace sluice::cupti {
namespace {

struct State {
  std::mutex mutex;  // guards the next two
  std::vector<std::string> calls;
  std::map<std::string, CUptiResult> failures;

  // Guards the rest. Held over the callbacks, and taken by flushes and questions: CUPTI's own locks
  // are like that, so whoever calls it from a callback, or with a lock that the callbacks take,
  // hangs here, too.
  std::mutex device;
  CUpti_BuffersCallbackRequestFunc requested = nullptr;
  CUpti_BuffersCallbackCompleteFunc completed = nullptr;
  std::uint8_t* buffer = nullptr;
  std::size_t buffer_bytes = 0;
  std::size_t used_bytes = 0;
  std::size_t dropped_count = 0;
  std::uint32_t next_correlation = 1;
  std::atomic<bool> held = false;
  std::atomic<std::int64_t> clock_offset_ns = 0;
};

State* state = nullptr;
thread_local std::map<int, std::vector<std::uint64_t>> external_ids;

std::uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

CUptiResult answer(const std::string& call) {
  const std::lock_guard lock(state->mutex);
  state->calls.push_back(call);
  for (const auto& [begin, result] : state->failures) {
    if (call.starts_with(begin)) return result;
  }
  return CUPTI_SUCCESS;
}

void hand_back_locked() {
  std::uint8_t* const buffer = std::exchange(state->buffer, nullptr);
  const std::size_t used_bytes = std::exchange(state->used_bytes, 0);
  if (buffer != nullptr) state->completed(nullptr, 0, buffer, state->buffer_bytes, used_bytes);
}

void hand_back() {
  const std::lock_guard lock(state->device);
  hand_back_locked();
}

template <typename Activity>
void write_locked(const Activity& activity) {
  if (state->used_bytes + sizeof activity > state->buffer_bytes) hand_back_locked();
  if (state->buffer == nullptr) {
    std::size_t record_count_max = 0;
    state->requested(&state->buffer, &state->buffer_bytes, &record_count_max);
  }
  if (state->buffer == nullptr) {
    state->dropped_count += 1;
    return;
  }
  std::memcpy(state->buffer + state->used_bytes, &activity, sizeof activity);
  state->used_bytes += sizeof activity;
}

}  // namespace

FakeCupti::FakeCupti() {
  CHECK(state == nullptr);
  state = new State;
}

FakeCupti::~FakeCupti() { delete std::exchange(state, nullptr); }

CuptiApi FakeCupti::api() const {
  CuptiApi api;
  api.version = [](std::uint32_t* version) {
    *version = CUPTI_API_VERSION;
    return answer("version");
  };
  api.timestamp = [](std::uint64_t* timestamp) {
    *timestamp = now_ns() + static_cast<std::uint64_t>(state->clock_offset_ns);
    return answer("timestamp");
  };
  api.set_attribute = [](CUpti_ActivityAttribute attribute, std::size_t* size, void* value) {
    std::uint64_t number = 0;
    std::memcpy(&number, value, *size);
    return answer(fmt::format("set {} = {}", static_cast<int>(attribute), number));
  };
  api.register_callbacks = [](CUpti_BuffersCallbackRequestFunc requested,
                              CUpti_BuffersCallbackCompleteFunc completed) {
    state->requested = requested;
    state->completed = completed;
    return answer("register");
  };
  api.enable = [](CUpti_ActivityKind kind) {
    return answer(fmt::format("enable {}", static_cast<int>(kind)));
  };
  api.disable = [](CUpti_ActivityKind kind) {
    return answer(fmt::format("disable {}", static_cast<int>(kind)));
  };
  api.enable_runtime_api = [](CUpti_CallbackId, std::uint8_t) { return answer("quiet runtime"); };
  api.enable_driver_api = [](CUpti_CallbackId, std::uint8_t) { return answer("quiet driver"); };
  api.flush_all = [](std::uint32_t flag) {
    if (flag != 0 || !state->held) hand_back();
    return answer(fmt::format("flush {}", flag));
  };
  api.flush_period = [](std::uint32_t period) { return answer(fmt::format("period {}", period)); };
  api.next_record = iterator_at_hand();
  api.dropped_records = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    const CUptiResult result = answer("dropped");
    const std::lock_guard lock(state->device);
    *dropped = std::exchange(state->dropped_count, 0);
    return result;
  };
  api.push_external_id = [](CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
    const CUptiResult result = answer(fmt::format("push {}", static_cast<int>(kind)));
    if (result == CUPTI_SUCCESS) external_ids[kind].push_back(id);
    return result;
  };
  api.pop_external_id = [](CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
    const CUptiResult result = answer(fmt::format("pop {}", static_cast<int>(kind)));
    if (external_ids[kind].empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    *last = external_ids[kind].back();
    external_ids[kind].pop_back();
    return result;
  };
  return api;
}

void FakeCupti::launch(const char* kernel, std::uint64_t dur_ns) {
  MadeWork work{.name = kernel, .start = now_ns()};
  work.end = work.start + 100;
  const std::lock_guard lock(state->device);
  work.correlation = state->next_correlation++;
  for (const auto& [kind, ids] : external_ids) {
    if (ids.empty()) continue;
    ExternalCorrelationActivity external = made_step(work.correlation, 0);
    external.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    external.externalId = ids.back();
    write_locked(external);
  }
  write_locked(made_call(work));
  work.start = work.end;
  work.end += dur_ns;
  write_locked(made_kernel(work));
}

void FakeCupti::hold_buffers(bool held) { state->held = held; }
void FakeCupti::deliver() { hand_back(); }

std::vector<std::string> FakeCupti::calls() const {
  const std::lock_guard lock(state->mutex);
  return state->calls;
}

void FakeCupti::fail(const std::string& call, CUptiResult result) {
  const std::lock_guard lock(state->mutex);
  state->failures[call] = result;
}

void FakeCupti::set_clock_offset(std::int64_t offset_ns) { state->clock_offset_ns = offset_ns; }

}  // namespace sluice::cupti
