// How fast is the AdamW update? Against a loop that only moves the same bytes, and against torch's
// fused AdamW followed by its cast to bf16; and how fast are the rules with two arrays? All work on
// the same buffers in one process and take turns, so that a noisy machine disturbs them alike; the
// ratios are medians over rounds.
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

using optimizer::RuleKind;
using optimizer::UpdateArrays;

void on_threads(const UpdateArrays& arrays, int thread_count,
                const std::function<void(const UpdateArrays&)>& work) {
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
  contenders.push_back({"adamw + bf16 copy", update_with(RuleKind::adamw, arrays), {}, 30});
  contenders.push_back({"same streams, no arithmetic",
                        [&](std::int64_t) { on_threads(arrays, thread_count, touch_streams); },
                        {},
                        30});
#ifdef SLUICE_TORCH
  TorchChain torch(optimizer::default_options(RuleKind::adamw), arrays, thread_count);
  contenders.push_back({"torch _fused_adamw_ + copy_ to bf16",
                        [&](std::int64_t step) { torch.step(step); },
                        {},
                        30});
#endif
  const std::size_t adamw_count = contenders.size();
  contenders.push_back({"adagrad + bf16 copy", update_with(RuleKind::adagrad, two_arrays), {}, 22});
  contenders.push_back({"sgd + bf16 copy", update_with(RuleKind::sgd, two_arrays), {}, 22});
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
