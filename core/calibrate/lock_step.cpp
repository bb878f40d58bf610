#include "core/calibrate/lock_step.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace sluice::calibrate {
namespace {

constexpr TimeNs kTurnNs = 1'000'000;  // about what a product of matrices in a layer takes
constexpr TimeNs kGapMinNs = 2'000;    // less than a switch to another thread and back
constexpr int kSpinsAYield = 1024;

// The longest time between two readings that follow at once; more is a gap. Some clocks take a
// microsecond to read.
TimeNs longest_without_gap() {
  TimeNs shortest = std::numeric_limits<TimeNs>::max();
  for (int i = 0; i < 1000; ++i) {
    const TimeNs from_ns = monotonic_now_ns();
    shortest = std::min(shortest, monotonic_now_ns() - from_ns);
  }
  return std::max(kGapMinNs, 4 * shortest);
}

void compute(TimeNs for_ns, TimeNs gap_ns) {
  TimeNs last_ns = monotonic_now_ns();
  for (TimeNs computed_ns = 0; computed_ns < for_ns;) {
    const TimeNs now_ns = monotonic_now_ns();
    if (now_ns - last_ns <= gap_ns) computed_ns += now_ns - last_ns;
    last_ns = now_ns;
  }
}

// Spins, as a kernel's threads do; with fewer processors than threads the others must get theirs.
void wait_until(const std::atomic<int>& arrived_count, int count) {
  for (int spins = 1; arrived_count.load(std::memory_order_acquire) < count; ++spins) {
    if (spins % kSpinsAYield == 0) std::this_thread::yield();
  }
}

}  // namespace

double lock_step_seconds(int thread_count, double seconds) {
  const TimeNs gap_ns = longest_without_gap();
  const int turn_count = std::max(1, static_cast<int>(seconds * 1e9 / kTurnNs));
  std::atomic<int> arrived_count = 0;
  std::vector<std::jthread> threads;
  const TimeNs start_ns = monotonic_now_ns();
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      for (int turn = 1; turn <= turn_count; ++turn) {
        compute(kTurnNs, gap_ns);
        arrived_count.fetch_add(1, std::memory_order_release);
        wait_until(arrived_count, turn * thread_count);
      }
    });
  }
  threads.clear();
  return static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
}

}  // namespace sluice::calibrate
