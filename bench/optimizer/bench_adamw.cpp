// How fast is the AdamW update? Against a loop that only moves the same bytes, and against torch's
// fused AdamW followed by its cast to bf16. All work on the same buffers in one process and take
// turns, so that a noisy machine disturbs them alike; the ratios are medians over rounds.
//
//   bench_adamw [MEBI_ELEMENTS=64] [THREADS=2] [ROUNDS=11]

#include <fmt/format.h>

#include <functional>
#include <thread>
#include <vector>

#include "base/units.h"
#include "bench/contenders.h"
#include "bench/optimizer/touch_streams.h"
#include "core/optimizer/update_rule.h"
#ifdef SLUICE_TORCH
#include "bench/optimizer/torch_chain.h"
#endif

namespace sluice::bench {
namespace {

using optimizer::AdamWArrays;

void on_threads(const AdamWArrays& arrays, int thread_count,
                const std::function<void(const AdamWArrays&)>& work) {
  bench::on_threads(
      arrays.element_count, 64, thread_count,
      [&](std::int64_t first, std::int64_t count) { work(slice(arrays, first, count)); });
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
  const AdamWArrays arrays{.element_count = count,
                           .master_weights = master_weights.get(),
                           .exp_avg = exp_avg.get(),
                           .exp_avg_sq = exp_avg_sq.get(),
                           .gradient = gradient.get(),
                           .parameters = parameters.get()};
  const optimizer::AdamWOptions options;

  std::vector<Contender> contenders;
  contenders.push_back({"adamw_update + bf16 copy",
                        [&](std::int64_t step) {
                          const auto scalars = optimizer::adamw_scalars(options, step, 1.0);
                          on_threads(arrays, thread_count, [&](const AdamWArrays& part) {
                            optimizer::adamw_update(scalars, part);
                          });
                        },
                        {}});
  contenders.push_back({"same streams, no arithmetic",
                        [&](std::int64_t) { on_threads(arrays, thread_count, touch_streams); },
                        {}});
#ifdef SLUICE_TORCH
  TorchChain torch(options, arrays, thread_count);
  contenders.push_back(
      {"torch _fused_adamw_ + copy_ to bf16", [&](std::int64_t step) { torch.step(step); }, {}});
#endif
  measure(contenders, rounds);

  fmt::print("bench_adamw {} {} {}: {} Mi elements, {} threads, {} rounds, on {}, {} CPUs\n",
             mebi_elements, thread_count, rounds, mebi_elements, thread_count, rounds, cpu_model(),
             std::thread::hardware_concurrency());
  const double bytes = 30.0 * static_cast<double>(count);  // an element: 16 read, 14 written
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    fmt::print("{:<36} median {:>8}  {:>10} of 30 bytes an element\n", contender.name,
               format_duration(static_cast<TimeNs>(seconds * 1e9)), format_rate(bytes / seconds));
  }
  for (std::size_t other = 1; other < contenders.size(); ++other) {
    fmt::print("adamw_update is {:.3f} x as fast as {}\n",
               speed_ratio(contenders[0], contenders[other]), contenders[other].name);
  }
#ifndef SLUICE_TORCH
  fmt::print("torch: not measured, this program was built with SLUICE_TORCH=OFF\n");
#endif
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
