#pragma once
// The plan that the header of a sparse gradient (docs/sparse_gradient_format.md) comes to: where
// its sections lie and how much of each is read. Everything that is read or written later is
// bounded by a plan, so a header that lies costs a status and no memory. A dense gradient is
// planned too, by its arguments.
//
// Thread contract: plain values and free functions.

#include <cstdint>

#include "hls/kernels/dataflow.h"
#include "hls/kernels/kernels.h"

namespace sluice::hls_kernels {

inline constexpr std::uint32_t kMagicLow = 0x53434c53u;   // "SLCS"
inline constexpr std::uint32_t kMagicHigh = 0x53524150u;  // "PARS"
inline constexpr std::uint32_t kSparseVersion = 1;
inline constexpr int kTileRows = kTileElements / kLanes;
static_assert(kTileElements % kLanes == 0, "a tile is whole words of fp32");
static_assert(kLanes == 16, "value_words() shifts by the logarithm of it");
static_assert(kTileElements <= 65536, "an index in a tile has 16 bits");

// A fault and its tile. The first one that is seen counts.
struct Fault {
  std::uint32_t status = kUpdated;
  std::uint32_t tile = 0;
};

struct GradientPlan {
  std::uint32_t status = kUpdated;  // other: nothing of the gradient is read, it counts as zeros
  bool is_sparse = false;
  GradientFormat format = kGradientFp32;  // of the elements or of the kept values
  std::uint64_t element_count = 0;
  std::uint64_t kept_count = 0;
  std::uint32_t tile_count = 0;
  std::uint64_t indices_word = 0;  // where the sections begin
  std::uint64_t values_word = 0;

  // Elements or values.
  std::uint64_t value_count() const {
    if (status != kUpdated) return 0;
    return is_sparse ? kept_count : element_count;
  }
  std::uint32_t values_per_word() const { return format == kGradientFp32 ? kLanes : 2 * kLanes; }
  // By a shift: what is no constant would be a divider of 64 stages.
  std::uint64_t value_words() const {
    return (value_count() + values_per_word() - 1) >> (format == kGradientFp32 ? 4 : 5);
  }
  std::uint64_t index_words() const { return (kept_count + 2 * kLanes - 1) / (2 * kLanes); }
  std::uint32_t elements_in(std::uint32_t tile) const {
    return tile + 1 < tile_count
               ? kTileElements
               : static_cast<std::uint32_t>(element_count -
                                            static_cast<std::uint64_t>(tile) * kTileElements);
  }
};

inline GradientPlan plan_without(std::uint64_t element_count) {
  GradientPlan plan;
  plan.element_count = element_count;
  plan.tile_count = static_cast<std::uint32_t>((element_count + kTileElements - 1) / kTileElements);
  return plan;
}

inline GradientPlan refused(GradientPlan plan, UpdateStatus status) {
  plan.status = status;
  plan.kept_count = 0;
  return plan;
}

inline GradientPlan plan_dense(std::uint64_t element_count, std::uint64_t gradient_words,
                               std::uint32_t format) {
  GradientPlan plan = plan_without(element_count);
  plan.format = static_cast<GradientFormat>(format);
  if (plan.value_words() > gradient_words) return refused(plan, kCutGradient);
  return plan;
}

inline GradientPlan plan_sparse(const Word& header, std::uint64_t element_count,
                                std::uint64_t gradient_words) {
  GradientPlan plan = plan_without(element_count);
  plan.is_sparse = true;
  const bool is_ours = header[0] == kMagicLow && header[1] == kMagicHigh &&
                       header[2] == kSparseVersion && header[3] <= kGradientFp16 &&
                       header[9] == kTileElements;
  if (!is_ours) return refused(plan, kForeignGradient);
  std::uint32_t reserved = 0;
or_reserved:
  for (int lane = 10; lane < kLanes; ++lane) {
#pragma HLS unroll
    reserved |= header[lane];
  }
  if (reserved != 0) return refused(plan, kNotZero);
  plan.format = static_cast<GradientFormat>(header[3]);
  plan.kept_count = lane64(header, 3);
  const bool is_of_these = lane64(header, 2) == element_count && header[8] == plan.tile_count &&
                           plan.kept_count <= element_count;
  if (!is_of_these) return refused(plan, kWrongCounts);
  plan.indices_word = 1 + (plan.tile_count + kLanes - 1) / kLanes;
  plan.values_word = plan.indices_word + plan.index_words();
  if (plan.values_word + plan.value_words() > gradient_words) return refused(plan, kCutGradient);
  return plan;
}

}  // namespace sluice::hls_kernels
