// The sampler on this very process. How many samples come depends on the machine: asked is only
// that some do, and what they say.

#include "profiler/sample/host_sampler.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/clock.h"
#include "storage/rundb/sample_rows.h"
#include "tests/skip.h"

namespace sluice::sample {

// Exported, so that it has a name.
[[gnu::noinline]] std::uint64_t busy_sampled_function(const std::atomic<bool>& ends) {
  volatile std::uint64_t value = 1;
  while (!ends.load()) value = value * 6364136223846793005u + 1442695040888963407u;
  return value;
}

namespace {

struct Taken {
  std::mutex mutex;
  rundb::SampleRows rows;
  HostSampler::Sink sink() {
    return [this](rundb::SampleRows&& more) {
      const std::lock_guard lock(mutex);
      rundb::move_behind(rows, std::move(more));
    };
  }
  // Threads that have a sample in it.
  std::size_t threads_in(const std::string& function) {
    const std::lock_guard lock(mutex);
    std::map<std::int64_t, std::string> names;
    for (const auto& row : rows.functions) names[row.id] = row.name;
    std::map<std::int64_t, std::string> of_call;
    for (const auto& row : rows.calls) of_call[row.id] = names[row.function_id];
    std::set<std::int64_t> threads;
    for (const auto& row : rows.samples) {
      if (of_call[row.call_id] == function) threads.insert(row.thread_id);
    }
    return threads.size();
  }
};

constexpr const char* kBusy = "sluice::sample::busy_sampled_function(std::atomic<bool> const&)";

TEST_CASE("threads that were there and threads that come are sampled by their functions") {
  std::atomic<bool> ends = false;
  std::thread there([&ends] { (void)busy_sampled_function(ends); });
  auto sampler = HostSampler::open({.samples_per_second = 997});
  if (!sampler.ok()) {
    ends = true;
    there.join();
    return skip_test(sampler.error().message());
  }
  Taken taken;
  const TimeNs begin_ts = monotonic_now_ns();
  REQUIRE((*sampler)->start(taken.sink()).ok());
  std::thread comes([&ends] { (void)busy_sampled_function(ends); });
  while (taken.threads_in(kBusy) < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ends = true;
  there.join();
  comes.join();
  (*sampler)->stop();
  const TimeNs end_ts = monotonic_now_ns();

  std::map<std::int64_t, TimeNs> running;
  for (const rundb::ProcessorTimeRow& row : taken.rows.times) {
    CHECK(row.running + row.preempted + row.waiting == row.dur);
    CHECK(row.ts >= begin_ts);
    CHECK(row.end_ts() <= end_ts);
    running[row.thread_id] += row.running;
  }
  std::map<std::int64_t, std::int64_t> samples;
  for (const rundb::CallSampleRow& row : taken.rows.samples) {
    CHECK(row.ts >= begin_ts);
    CHECK(row.ts <= end_ts);
    samples[row.thread_id] += 1;
  }
  // Who has samples has run.
  for (const auto& [thread, count] : samples) CHECK(running[thread] > 0);
  const auto counts = (*sampler)->side_counts();
  CHECK(counts.front().value == static_cast<std::int64_t>(taken.rows.samples.size()));
}

TEST_CASE("a sampler that never started stops, too") {
  auto sampler = HostSampler::open({.samples_per_second = 99});
  if (!sampler.ok()) return skip_test(sampler.error().message());
  (*sampler)->stop();
  CHECK((*sampler)->side_counts().front().value == 0);
}

}  // namespace
}  // namespace sluice::sample
