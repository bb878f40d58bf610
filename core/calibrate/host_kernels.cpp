#include "core/calibrate/host_kernels.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "base/check.h"
#include "base/clock.h"
#include "base/split_mix.h"
#include "base/state_codec.h"
#include "base/units.h"
#include "core/compress/sparse_gradient.h"
#include "core/compress/top_k.h"
#include "core/csd/update_kernel.h"
#include "core/optimizer/gradient_stats.h"
#include "core/optimizer/split_update.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/checksum.h"

namespace sluice::calibrate {
namespace {

// Elements of one thread; far beyond the caches (42 MB of AdamW's streams).
constexpr std::int64_t kElements = std::int64_t{3} << 19;
constexpr double kDensity = 0.01;

// The work of each thread, all at once; seconds of the slowest.
double seconds_of(int thread_count, const std::function<void(int thread)>& work) {
  const TimeNs start_ns = monotonic_now_ns();
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();
  return static_cast<double>(monotonic_now_ns() - start_ns) / 1e9;
}

// Amount a second of each repeat, after one pass that warms up. Passes of a few milliseconds are
// joined to repeats that last long beside the start of threads and a slice of the scheduler's.
Figure rate_of(const KernelOptions& options, int thread_count, double amount,
               const std::function<void(int thread)>& work) {
  constexpr double kRepeatSeconds = 0.06;
  const double warm_up_seconds = seconds_of(thread_count, work);
  const int pass_count = static_cast<int>(std::ceil(kRepeatSeconds / warm_up_seconds));
  std::vector<double> rates;
  for (int i = 0; i < options.repeat_count; ++i) {
    const double took = seconds_of(thread_count, [&](int thread) {
      for (int pass = 0; pass < pass_count; ++pass) work(thread);
    });
    rates.push_back(amount * pass_count / took);
  }
  return figure_of(rates);
}

std::vector<float> made_gradient(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    // The sum of two even distributions: a top hundredth that is thin, as of a gradient.
    const double a = unit_interval(split_mix(seed, 2 * i));
    const double b = unit_interval(split_mix(seed, 2 * i + 1));
    values[i] = static_cast<float>((a + b - 1) * 1e-3);
  }
  return values;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

// One thread's subgroup, with the checksums that the last update left.
struct Subgroup {
  Subgroup(const StoredArrays& stored_arrays, std::uint64_t seed)
      : stored(stored_arrays),
        gradient(made_gradient(kElements, seed)),
        parameters(static_cast<std::size_t>(stored.is_split() ? 0 : kElements)) {
    StoredSpan span;
    span.arrays = stored;
    span.element_count = kElements;
    for (std::size_t a = 0; a < static_cast<std::size_t>(stored.count); ++a) {
      state[a].resize(static_cast<std::size_t>(array_bytes(stored.codes[a], kElements)));
      span.data[a] = state[a].data();
    }
    // Squares and sums of squares must not be negative.
    const std::vector<float> weights(static_cast<std::size_t>(kElements), 0.02f);
    const std::vector<float> moments(static_cast<std::size_t>(kElements), 1e-5f);
    std::vector<std::span<const float>> values(static_cast<std::size_t>(stored.decoded_count()),
                                               moments);
    values[0] = weights;
    encode(values, CodeRounding::nearest(), 0, span);
    for (std::size_t a = 0; a < static_cast<std::size_t>(stored.count); ++a)
      checksums[a] = state::checksum(state[a]);
    for (std::int64_t first = 0; first < kElements; first += kElements / 4) {
      checks.push_back({first * 4, kElements / 4 * 4,
                        state::checksum(bytes_of(gradient).subspan(
                            static_cast<std::size_t>(first) * 4, kElements / 4 * 4))});
    }
  }

  csd::UpdateMemory memory() {
    csd::UpdateMemory memory;
    for (std::size_t a = 0; a < state.size(); ++a) memory.state[a] = state[a].data();
    memory.gradient = std::as_bytes(std::span(gradient));
    memory.parameters = parameters.empty() ? nullptr : parameters.data();
    return memory;
  }

  StoredArrays stored;
  std::array<std::vector<std::byte>, kMaxStoredArrays> state;
  std::vector<float> gradient;
  std::vector<std::uint16_t> parameters;
  csd::UpdatedChecksums checksums{};
  std::vector<csd::GradientChunkCheck> checks;
};

std::vector<std::unique_ptr<Subgroup>> subgroups(optimizer::RuleKind rule, StateFormatKind format,
                                                 int count) {
  const StoredArrays stored = optimizer::stored_arrays(rule, {.kind = format});
  std::vector<std::unique_ptr<Subgroup>> made;
  for (int t = 0; t < count; ++t) {
    made.push_back(std::make_unique<Subgroup>(stored, static_cast<std::uint64_t>(t)));
  }
  return made;
}

// With its own gradient, or with a sparse one.
void update_subgroup(const optimizer::UpdateScalars& scalars, Subgroup& subgroup,
                     std::span<const std::byte> sparse = {}) {
  csd::UpdateOrder order;
  order.task.scalars = scalars;
  order.task.element_count = kElements;
  order.task.stored = subgroup.stored;
  order.task.rounding = CodeRounding::of_step(1, 1);
  order.task.is_sparse = !sparse.empty();
  order.check.expected = subgroup.checksums;
  csd::UpdateMemory memory = subgroup.memory();
  if (order.task.is_sparse) {
    memory.gradient = sparse;
  } else {
    order.check.gradient = subgroup.checks;
  }
  CHECK(csd::run_update(order, memory, subgroup.checksums).ok());
}

double total(const KernelOptions& options) {
  return static_cast<double>(kElements) * options.thread_count;
}

}  // namespace

Figure measure_update(optimizer::RuleKind rule, StateFormatKind format,
                      const KernelOptions& options) {
  const auto work = subgroups(rule, format, options.thread_count);
  const auto scalars = optimizer::update_scalars(optimizer::default_options(rule), 1, 1.0);
  return rate_of(options, options.thread_count, total(options), [&](int thread) {
    update_subgroup(scalars, *work[static_cast<std::size_t>(thread)]);
  });
}

Figure measure_stage(const KernelOptions& options) {
  constexpr std::int64_t kChunkElements = 1 << 20;  // a bounce buffer of 4 MiB
  constexpr std::int64_t kLayerElements = 8 * kChunkElements;
  std::vector<std::uint16_t> layer(static_cast<std::size_t>(kLayerElements));
  optimizer::narrow(made_gradient(kLayerElements, 1).data(), Float16Kind::bf16, layer.data(),
                    kLayerElements);
  std::vector<std::vector<float>> bounces(
      8, std::vector<float>(static_cast<std::size_t>(kChunkElements)));
  return rate_of(options, 1, 2.0 * kLayerElements, [&](int) {
    const auto stats =
        optimizer::gradient_stats(layer.data(), optimizer::GradientKind::bf16, kLayerElements);
    CHECK(stats.finite);
    for (std::size_t chunk = 0; chunk < bounces.size(); ++chunk) {
      optimizer::widen(layer.data() + chunk * kChunkElements, Float16Kind::bf16,
                       bounces[chunk].data(), kChunkElements);
      CHECK(state::checksum(bytes_of(bounces[chunk])) != 0);
    }
  });
}

Figure measure_checksum(const KernelOptions& options) {
  // Beyond the caches, as what layers keep is.
  std::vector<float> block(std::size_t{16} << 20, 1.0f);
  const auto size_bytes = static_cast<double>(block.size() * sizeof(float));
  return rate_of(options, 1, size_bytes,
                 [&](int) { CHECK(state::checksum(bytes_of(block)) != 0); });
}

Figure measure_compress(const KernelOptions& options) {
  const std::int64_t k = compress::kept_count(kDensity, kElements);
  const std::vector<float> gradient = made_gradient(kElements, 1);
  std::vector<std::uint16_t> layer(gradient.size());
  optimizer::narrow(gradient.data(), Float16Kind::bf16, layer.data(), kElements);
  std::vector<float> widened(gradient.size());
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(k));
  std::vector<float> values(static_cast<std::size_t>(k));
  compress::TopKSelector selector({.kept_capacity = k, .slice_count = 1});
  return rate_of(options, 1, static_cast<double>(kElements), [&](int) {
    const auto stats =
        optimizer::gradient_stats(layer.data(), optimizer::GradientKind::bf16, kElements);
    CHECK(stats.finite);
    optimizer::widen(layer.data(), Float16Kind::bf16, widened.data(), kElements);
    compress::top_k(widened, k, 1, selector,
                    {.indices = indices.data(), .values = values.data(), .capacity = k});
  });
}

Figure measure_decompress(const KernelOptions& options) {
  const std::int64_t k = compress::kept_count(kDensity, kElements);
  const auto work =
      subgroups(optimizer::RuleKind::adamw, StateFormatKind::fp32, options.thread_count);
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(k));
  std::vector<float> values(static_cast<std::size_t>(k));
  compress::TopKSelector selector({.kept_capacity = k, .slice_count = 1});
  compress::top_k(work[0]->gradient, k, 1, selector,
                  {.indices = indices.data(), .values = values.data(), .capacity = k});
  auto sparse = io::PageAlignedBuffer::allocate(
      compress::sparse_gradient_bytes(kElements, k, optimizer::GradientKind::fp32));
  if (!sparse.ok()) return {};
  compress::encode_sparse_gradient({.indices = indices, .values = values}, kElements,
                                   optimizer::GradientKind::fp32, sparse->bytes());
  const auto scalars = optimizer::update_scalars({}, 1, 1.0);
  return rate_of(options, options.thread_count, total(options), [&](int thread) {
    update_subgroup(scalars, *work[static_cast<std::size_t>(thread)], sparse->bytes());
  });
}

Figure measure_memory_copy(const KernelOptions& options) {
  std::vector<std::vector<float>> from, to;
  for (int t = 0; t < options.thread_count; ++t) {
    from.emplace_back(static_cast<std::size_t>(8 * kElements), 1.0f);
    to.emplace_back(static_cast<std::size_t>(8 * kElements), 0.0f);
  }
  return rate_of(options, options.thread_count, 8 * 4 * total(options), [&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    std::memcpy(to[t].data(), from[t].data(), from[t].size() * 4);
  });
}

}  // namespace sluice::calibrate
