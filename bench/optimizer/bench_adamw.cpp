// How fast is the AdamW update? Against a loop that only moves the same bytes, and against torch's
// fused AdamW followed by its cast to bf16; and how fast are the rules with two arrays? All work on
// the same buffers in one process and take turns, so that a noisy machine disturbs them alike; the
// ratios are medians over rounds.
//
//   bench_adamw [MEBI_ELEMENTS=64] [THREADS=2] [ROUNDS=11]

#include <fmt/format.h>

#include <algorithm>
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
#include "bench/optimizer/touch_streams.h"
#include "core/optimizer/update_rule.h"
#ifdef SLUICE_TORCH
#include "bench/optimizer/torch_chain.h"
#endif

namespace sluice::bench {
namespace {

using optimizer::RuleKind;
using optimizer::UpdateArrays;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <typename T>
using Buffer = std::unique_ptr<T[], Free>;

template <typename T>
Buffer<T> allocate(std::int64_t count, T value) {
  const std::int64_t bytes = round_up(count * static_cast<std::int64_t>(sizeof(T)), kPageBytes);
  auto* memory = static_cast<T*>(std::aligned_alloc(kPageBytes, static_cast<std::size_t>(bytes)));
  CHECK(memory != nullptr);
  std::fill_n(memory, count, value);
  return Buffer<T>(memory);
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Divides the arrays evenly, in whole cache lines.
void on_threads(const UpdateArrays& arrays, int thread_count,
                const std::function<void(const UpdateArrays&)>& work) {
  const std::int64_t share = round_up(divide_up(arrays.element_count, thread_count), 64);
  std::vector<std::thread> threads;
  for (int k = 0; k < thread_count; ++k) {
    const std::int64_t first = std::min(k * share, arrays.element_count);
    const std::int64_t count = std::min(share, arrays.element_count - first);
    threads.emplace_back([&, first, count] { work(slice(arrays, first, count)); });
  }
  for (std::thread& thread : threads) thread.join();
}

struct Contender {
  std::string name;
  int element_bytes;  // read and written
  std::function<void(std::int64_t step)> run;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median over rounds of how many times as fast the first was as `other` in the same round.
double speed_ratio(const Contender& ours, const Contender& other) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.seconds.size(); ++round)
    ratios.push_back(other.seconds[round] / ours.seconds[round]);
  return median(ratios);
}

void measure(std::vector<Contender>& contenders, int rounds) {
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

int argument(int argc, char** argv, int index, int otherwise) {
  return argc > index ? std::max(1, std::atoi(argv[index])) : otherwise;
}

int run(int argc, char** argv) {
  const int mebi_elements = argument(argc, argv, 1, 64);
  const int thread_count = argument(argc, argv, 2, 2);
  const int rounds = argument(argc, argv, 3, 11);
  const std::int64_t count = std::int64_t{mebi_elements} << 20;

  const Buffer<float> master_weights = allocate(count, 0.02f);
  const Buffer<float> exp_avg = allocate(count, 1e-3f);
  const Buffer<float> exp_avg_sq = allocate(count, 1e-5f);
  const Buffer<float> gradient = allocate(count, 1e-2f);
  const Buffer<std::uint16_t> parameters = allocate<std::uint16_t>(count, 0);
  const UpdateArrays arrays{.element_count = count,
                            .state = {master_weights.get(), exp_avg.get(), exp_avg_sq.get()},
                            .gradient = gradient.get(),
                            .parameters = parameters.get()};
  UpdateArrays two_arrays = arrays;  // what AdaGrad sums up must not be negative
  two_arrays.state = {master_weights.get(), exp_avg_sq.get(), nullptr};
  const auto update_with = [&](RuleKind rule, const UpdateArrays& of_rule) {
    return [&of_rule, rule, thread_count](std::int64_t step) {
      const auto scalars = optimizer::update_scalars(optimizer::default_options(rule), step, 1.0);
      on_threads(of_rule, thread_count,
                 [&](const UpdateArrays& part) { optimizer::update(scalars, part); });
    };
  };

  std::vector<Contender> contenders;
  contenders.push_back({"adamw + bf16 copy", 30, update_with(RuleKind::adamw, arrays), {}});
  contenders.push_back({"same streams, no arithmetic",
                        30,
                        [&](std::int64_t) { on_threads(arrays, thread_count, touch_streams); },
                        {}});
#ifdef SLUICE_TORCH
  TorchChain torch(optimizer::default_options(RuleKind::adamw), arrays, thread_count);
  contenders.push_back({"torch _fused_adamw_ + copy_ to bf16",
                        30,
                        [&](std::int64_t step) { torch.step(step); },
                        {}});
#endif
  const std::size_t adamw_count = contenders.size();
  contenders.push_back({"adagrad + bf16 copy", 22, update_with(RuleKind::adagrad, two_arrays), {}});
  contenders.push_back({"sgd + bf16 copy", 22, update_with(RuleKind::sgd, two_arrays), {}});
  measure(contenders, rounds);

  fmt::print("bench_adamw {} {} {}: {} Mi elements, {} threads, {} rounds, on {}, {} CPUs\n",
             mebi_elements, thread_count, rounds, mebi_elements, thread_count, rounds, cpu_model(),
             std::thread::hardware_concurrency());
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    const double bytes = static_cast<double>(contender.element_bytes) * static_cast<double>(count);
    fmt::print("{:<36} median {:>8}  {:>10} of {} bytes an element\n", contender.name,
               format_duration(static_cast<TimeNs>(seconds * 1e9)), format_rate(bytes / seconds),
               contender.element_bytes);
  }
  for (std::size_t other = 1; other < adamw_count; ++other) {
    fmt::print("adamw is {:.3f} x as fast as {}\n", speed_ratio(contenders[0], contenders[other]),
               contenders[other].name);
  }
#ifndef SLUICE_TORCH
  fmt::print("torch: not measured, this program was built with SLUICE_TORCH=OFF\n");
#endif
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
