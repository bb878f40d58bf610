// How fast is compression of gradients? Selecting a hundredth of normally distributed fp32 values,
// against torch doing the same and against memcpy of the gradient; and the update that decompresses
// as it goes, against the dense update with an fp32 gradient. All take turns in one process; the
// ratios are medians over rounds.
//
//   OMP_WAIT_POLICY=passive bench_compress [MEBI_ELEMENTS=16] [THREADS=2] [ROUNDS=11]
//
// (Without OMP_WAIT_POLICY, torch's threads spin for a while after its turn and disturb the next.)

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/units.h"
#include "bench/contenders.h"
#include "core/compress/sampled_top_k.h"
#include "core/compress/sparse_gradient.h"
#include "core/compress/sparse_update.h"
#include "core/compress/top_k.h"
#include "core/optimizer/update_rule.h"
#ifdef SLUICE_TORCH
#include "bench/compress/torch_top_k.h"
#endif

namespace sluice::bench {
namespace {

using compress::KeptRoom;
using compress::kTileElements;
using optimizer::UpdateArrays;

constexpr double kDensity = 0.01;

struct Sizes {
  std::int64_t element_count;
  std::int64_t k;
  std::int64_t capacity;  // of a sampled selection
  int thread_count;
  int rounds;
};

struct Room {
  explicit Room(std::int64_t capacity)
      : indices(allocate<std::uint32_t>(capacity, 0)),
        values(allocate<float>(capacity, 0)),
        room{.indices = indices.get(), .values = values.get(), .capacity = capacity} {}
  Buffer<std::uint32_t> indices;
  Buffer<float> values;
  KeptRoom room;
};

Buffer<float> normal_gradient(std::int64_t count) {
  Buffer<float> gradient = allocate<float>(count, 0);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 1e-3f);
  for (std::int64_t i = 0; i < count; ++i) gradient[i] = normal(random);
  return gradient;
}

void print_times(const std::vector<Contender>& contenders, double bytes) {
  for (const Contender& contender : contenders) {
    const double seconds = median(contender.seconds);
    fmt::print("  {:<40} median {:>8}, best {:>8}", contender.name,
               format_duration(static_cast<TimeNs>(seconds * 1e9)),
               format_duration(static_cast<TimeNs>(
                   1e9 * *std::min_element(contender.seconds.begin(), contender.seconds.end()))));
    fmt::print("  {:>10} of gradient\n", format_rate(bytes / seconds));
  }
}

void print_ratio(const Contender& ours, const Contender& other) {
  fmt::print("  {} is {:.2f} x as fast as {}\n", ours.name, speed_ratio(ours, other), other.name);
}

void bench_selection(const Sizes& sizes, std::span<float> gradient, Room& exact) {
  const int threads = sizes.thread_count;
  compress::TopKSelector selector({.kept_capacity = sizes.k, .slice_count = threads});
  compress::SampledTopKSelector sampler({.kept_capacity = sizes.capacity, .slice_count = threads});
  Room sampled(sizes.capacity);
  Room with_feedback(sizes.k);
  const Buffer<float> residual = allocate<float>(sizes.element_count, 0);
  const Buffer<float> copy = allocate<float>(sizes.element_count, 0);
  std::int64_t sampled_count = 0;

  std::vector<Contender> all;
  all.push_back(
      {"top_k",
       [&](std::int64_t) { compress::top_k(gradient, sizes.k, threads, selector, exact.room); },
       {}});
  all.push_back({"sampled_top_k",
                 [&](std::int64_t step) {
                   sampled_count =
                       compress::sampled_top_k(
                           gradient,
                           {.density = kDensity, .seed = static_cast<std::uint64_t>(step)}, threads,
                           sampler, sampled.room)
                           .kept_count;
                 },
                 {}});
  all.push_back({"top_k with error feedback",
                 [&](std::int64_t) {
                   compress::top_k(
                       {.gradient = gradient, .residual = {residual.get(), gradient.size()}},
                       sizes.k, threads, selector, with_feedback.room);
                 },
                 {}});
  all.push_back({"memcpy of the gradient",
                 [&](std::int64_t) {
                   on_threads(sizes.element_count, 1024, threads,
                              [&](std::int64_t first, std::int64_t count) {
                                std::memcpy(copy.get() + first, gradient.data() + first,
                                            static_cast<std::size_t>(count) * 4);
                              });
                 },
                 {}});
#ifdef SLUICE_TORCH
  TorchTopK torch(gradient, sizes.k, threads);
  all.push_back({"torch abs, topk, gather", [&](std::int64_t) { torch.select(); }, {}});
#endif
  measure(all, sizes.rounds);

  fmt::print("selecting {} of {} (sampled: {}):\n", sizes.k, sizes.element_count, sampled_count);
  print_times(all, 4.0 * static_cast<double>(sizes.element_count));
  // memcpy reads and writes each byte, selecting reads it.
  for (std::size_t ours = 0; ours < 2; ++ours) {
    fmt::print("  {} reads at {:.2f} of the rate at which memcpy reads and writes\n",
               all[ours].name, speed_ratio(all[ours], all[3]) / 2);
  }
#ifdef SLUICE_TORCH
  for (std::size_t ours = 0; ours < 2; ++ours) print_ratio(all[ours], all[4]);
  const std::int64_t sum =
      std::accumulate(exact.indices.get(), exact.indices.get() + sizes.k, std::int64_t{0});
  const bool same = torch.sum_of_indices() == sum;
  fmt::print("  torch and top_k kept {} elements\n", same ? "the same" : "DIFFERENT");
#else
  fmt::print("  torch: not measured, this program was built with SLUICE_TORCH=OFF\n");
#endif
}

void bench_update(const Sizes& sizes, std::span<const float> gradient, const Room& kept) {
  const auto k = static_cast<std::size_t>(sizes.k);
  const std::int64_t bytes =
      compress::sparse_gradient_bytes(sizes.element_count, sizes.k, optimizer::GradientKind::fp32);
  const Buffer<std::byte> sparse = allocate(bytes, std::byte{0});
  const std::span<std::byte> sparse_bytes(sparse.get(), static_cast<std::size_t>(bytes));
  const Buffer<float> master_weights = allocate(sizes.element_count, 0.02f);
  const Buffer<float> exp_avg = allocate(sizes.element_count, 1e-3f);
  const Buffer<float> exp_avg_sq = allocate(sizes.element_count, 1e-5f);
  const UpdateArrays arrays{.element_count = sizes.element_count,
                            .state = {master_weights.get(), exp_avg.get(), exp_avg_sq.get()},
                            .gradient = gradient.data()};
  const auto on_tiles = [&](const auto& work) {
    on_threads(divide_up(sizes.element_count, kTileElements), 1, sizes.thread_count, work);
  };
  std::vector<Contender> all;
  all.push_back({"open, decompress and update",
                 [&](std::int64_t step) {
                   const auto scalars = optimizer::update_scalars({}, step, 1.0);
                   const auto view =
                       compress::open_sparse_gradient(sparse_bytes, sizes.element_count);
                   CHECK(view.ok());
                   on_tiles([&](std::int64_t first, std::int64_t count) {
                     compress::TileBuffer buffer;
                     compress::sparse_update(scalars, arrays, *view, first, count, buffer);
                   });
                 },
                 {}});
  all.push_back({"dense update, fp32 gradient",
                 [&](std::int64_t step) {
                   const auto scalars = optimizer::update_scalars({}, step, 1.0);
                   on_threads(sizes.element_count, 64, sizes.thread_count,
                              [&](std::int64_t first, std::int64_t count) {
                                optimizer::update(scalars, slice(arrays, first, count));
                              });
                 },
                 {}});
  all.push_back({"encode (one thread)",
                 [&](std::int64_t) {
                   compress::encode_sparse_gradient(
                       {.indices = {kept.indices.get(), k}, .values = {kept.values.get(), k}},
                       sizes.element_count, optimizer::GradientKind::fp32, sparse_bytes);
                 },
                 {}});
  all.push_back({"open (one thread)",
                 [&](std::int64_t) {
                   CHECK(compress::open_sparse_gradient(sparse_bytes, sizes.element_count).ok());
                 },
                 {}});
  all[2].run(0);
  measure(all, sizes.rounds);

  fmt::print("updating {} elements, sparse gradient of {} ({:.2f} bytes a kept element):\n",
             sizes.element_count, format_bytes(bytes),
             static_cast<double>(bytes) / static_cast<double>(sizes.k));
  print_times(all, 4.0 * static_cast<double>(sizes.element_count));
  print_ratio(all[0], all[1]);
}

int run(int argc, char** argv) {
  const std::int64_t count = std::int64_t{argument(argc, argv, 1, 16)} << 20;
  const std::int64_t k = compress::kept_count(kDensity, count);
  const Sizes sizes{.element_count = count,
                    .k = k,
                    .capacity = k + k / 4,
                    .thread_count = argument(argc, argv, 2, 2),
                    .rounds = argument(argc, argv, 3, 11)};
  fmt::print("bench_compress {} {} {} on {}, {} CPUs\n", count >> 20, sizes.thread_count,
             sizes.rounds, cpu_model(), std::thread::hardware_concurrency());
  const Buffer<float> gradient = normal_gradient(count);
  const std::span<float> values(gradient.get(), static_cast<std::size_t>(count));
  Room kept(k);
  bench_selection(sizes, values, kept);
  bench_update(sizes, values, kept);
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) { return sluice::bench::run(argc, argv); }
