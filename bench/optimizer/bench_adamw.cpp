// How fast is the AdamW update? Against a loop that only moves the same bytes, and against torch's
// fused AdamW followed by its cast to bf16; how fast is it on state in fewer bytes, and how fast
// are the rules with two arrays? All work on buffers of one size in one process and take turns, so
// that a noisy machine disturbs them alike; the ratios, of elements a second, are medians over
// rounds.
//
//   bench_adamw [MEBI_ELEMENTS=64] [THREADS=2] [ROUNDS=11] [INSTRUCTIONS]
//
// INSTRUCTIONS: Highway's name of those to be held to, as "AVX2"; else the processor's best.

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/units.h"
#include "bench/contenders.h"
#include "bench/optimizer/touch_streams.h"
#include "core/optimizer/split_update.h"
#include "core/optimizer/update_rule.h"
#include "hwy/highway.h"
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

// AdamW's state of `from`, stored in fewer bytes.
class SplitState {
 public:
  SplitState(const StateFormat& format, const UpdateArrays& from) {
    arrays_.gradient = from.gradient;
    arrays_.gradient_kind = from.gradient_kind;
    arrays_.state.arrays = optimizer::stored_arrays(RuleKind::adamw, format);
    arrays_.state.element_count = from.element_count;
    for (std::size_t a = 0; a < memory_.size(); ++a) {
      const std::int64_t bytes = array_bytes(arrays_.state.arrays.codes[a], from.element_count);
      memory_[a] = allocate(bytes, std::byte{0});
      arrays_.state.data[a] = memory_[a].get();
    }
    std::vector<std::span<const float>> values;
    for (const float* array : from.state)
      values.emplace_back(array, static_cast<std::size_t>(from.element_count));
    encode(values, CodeRounding::nearest(), 0, arrays_.state);
  }

  void update(std::int64_t step, int thread_count) const {
    const auto scalars =
        optimizer::update_scalars(optimizer::default_options(RuleKind::adamw), step, 1.0);
    optimizer::SplitArrays of_step = arrays_;
    of_step.rounding = CodeRounding::of_step(1, step);
    bench::on_threads(arrays_.state.element_count, kBlockElements, thread_count,
                      [&](std::int64_t first, std::int64_t count) {
                        optimizer::update(scalars, slice(of_step, first, count));
                      });
  }

 private:
  std::array<Buffer<std::byte>, kMaxStoredArrays> memory_;
  optimizer::SplitArrays arrays_;
};

// False if this processor, or this build, lacks them.
bool hold_to(const std::string& instructions) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (hwy::TargetName(target) != instructions) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return true;
  }
  return false;
}

int run(int argc, char** argv) {
  if (argc > 4 && !hold_to(argv[4])) {
    fmt::print(stderr, "bench_adamw: {} is not among the instructions here\n", argv[4]);
    return 2;
  }
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
  const std::size_t split_begin = contenders.size();
  const SplitState exact({StateFormatKind::exact}, arrays);
  const SplitState compact16({StateFormatKind::compact, 16}, arrays);
  const SplitState compact8({StateFormatKind::compact, 8}, arrays);
  // Scales not counted: 0.16 bytes.
  const auto add_split = [&](const char* name, const SplitState& state, int element_bytes) {
    contenders.push_back(
        {name, [&](std::int64_t step) { state.update(step, thread_count); }, {}, element_bytes});
  };
  add_split("adamw exact", exact, 28);
  add_split("adamw compact 16", compact16, 16);
  add_split("adamw compact 8", compact8, 14);
  const std::size_t split_end = contenders.size();
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
  for (std::size_t other = 1; other < split_begin; ++other) {
    fmt::print("adamw is {:.3f} x as fast as {}\n", speed_ratio(contenders[0], contenders[other]),
               contenders[other].name);
  }
  for (std::size_t split = split_begin; split < split_end; ++split) {
    fmt::print("{} does {:.3f} x the elements a second of {}\n", contenders[split].name,
               speed_ratio(contenders[split], contenders[0]), contenders[0].name);
  }
#ifndef SLUICE_TORCH
  fmt::print("torch: not measured, this program was built with SLUICE_TORCH=OFF\n");
#endif
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
