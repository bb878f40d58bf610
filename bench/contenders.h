#pragma once
// Things that are measured against one another: they take turns in one process, so that a noisy
// machine disturbs them alike, and what is compared are medians over rounds.
//
// Thread contract: one thread.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"

namespace sluice::bench {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <typename T>
using Buffer = std::unique_ptr<T[], Free>;

// Page-aligned, and each page touched.
template <typename T>
Buffer<T> allocate(std::int64_t count, T value) {
  const std::int64_t bytes = round_up(count * static_cast<std::int64_t>(sizeof(T)), kPageBytes);
  auto* memory = static_cast<T*>(std::aligned_alloc(kPageBytes, static_cast<std::size_t>(bytes)));
  CHECK_NE(memory, nullptr);
  std::fill_n(memory, count, value);
  return Buffer<T>(memory);
}

inline std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

inline int argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::max(1, std::atoi(argv[index])) : otherwise;
}

// Divides [0, count) evenly, in whole multiples of `unit`, among threads.
inline void on_threads(std::int64_t count, std::int64_t unit, int thread_count,
                       const std::function<void(std::int64_t first, std::int64_t count)>& work) {
  const std::int64_t share = round_up(divide_up(count, thread_count), unit);
  std::vector<std::thread> threads;
  for (int k = 0; k < thread_count; ++k) {
    const std::int64_t first = std::min(k * share, count);
    threads.emplace_back(work, first, std::min(share, count - first));
  }
  for (std::thread& thread : threads) thread.join();
}

struct Contender {
  std::string name;
  std::function<void(std::int64_t step)> run;
  std::vector<double> seconds = {};
  int element_bytes = 0;  // read and written, where that is shown
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median over rounds of how many times as fast the first was as `other` in the same round.
inline double speed_ratio(const Contender& ours, const Contender& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.seconds.size(); ++round)
    ratios.push_back(other.seconds[round] / ours.seconds[round]);
  return median(ratios);
}

inline void measure(std::vector<Contender>& contenders, int rounds) {
  std::int64_t step = 0;
  for (Contender& contender : contenders) contender.run(++step);  // warm up
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
      Contender& contender =
          contenders[(turn + static_cast<std::size_t>(round)) % contenders.size()];
      const TimeNs start = monotonic_now_ns();
      contender.run(++step);
      contender.seconds.push_back(static_cast<double>(monotonic_now_ns() - start) / 1e9);
    }
  }
}

}  // namespace sluice::bench
