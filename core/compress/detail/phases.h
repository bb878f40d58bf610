#pragma once
// Runs something that works in phases of slices (core/compress/top_k.h) to its end.
//
// Thread contract: one caller. With one thread nothing is allocated.

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace sluice::compress::detail {

// Slices begin at whole cache lines, so that two threads do not write to one.
struct SliceRange {
  std::int64_t first;
  std::int64_t count;
};
inline SliceRange slice_range(std::int64_t element_count, int slice_count, int slice) {
  constexpr std::int64_t kLine = 16;
  const std::int64_t lines = (element_count + kLine - 1) / kLine;
  const std::int64_t first = std::min(lines * slice / slice_count * kLine, element_count);
  const std::int64_t end = std::min(lines * (slice + 1) / slice_count * kLine, element_count);
  return {.first = first, .count = end - first};
}

template <class Selector>
void run_phases(Selector& selector, int thread_count) {
  const int worker_count = std::min(thread_count, selector.slice_count());
  if (worker_count <= 1) {
    while (!selector.is_done()) {
      for (int slice = 0; slice < selector.slice_count(); ++slice) selector.run_slice(slice);
      selector.end_phase();
    }
    return;
  }
  std::barrier barrier(worker_count, [&]() noexcept { selector.end_phase(); });
  const auto work = [&](int worker) {
    while (!selector.is_done()) {
      for (int slice = worker; slice < selector.slice_count(); slice += worker_count)
        selector.run_slice(slice);
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (int worker = 1; worker < worker_count; ++worker) threads.emplace_back(work, worker);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::compress::detail
