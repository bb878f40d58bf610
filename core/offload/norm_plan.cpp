#include "core/offload/norm_plan.h"

#include <algorithm>
#include <cmath>

namespace sluice::offload {
namespace {

using optimizer::GradientStats;
using optimizer::kNormBlockElements;

GradientStats with_sum(const GradientStats& before, double sum) {
  return optimizer::add_block(before, {.sum_of_squares = sum, .finite = std::isfinite(sum)});
}

}  // namespace

std::optional<NormPlan> norm_plan(const OffloadOptions& options, const model::FlatLayout& layout,
                                  const state::Geometry& geometry) {
  if (options.overlap != Overlap::local) return std::nullopt;
  return NormPlan(layout, geometry);
}

// Upwards, so segments are numbered in flat order.
NormPlan::NormPlan(const model::FlatLayout& layout, const state::Geometry& geometry) {
  for (const model::LayerRange& range : layout.layers) {
    Layer& layer = layers_.emplace_back();
    layer.element_count = range.count;
    layer.block_count = optimizer::norm_block_count(range.count);
    layer.first_segment = segment_count_;
    const std::int64_t layer_end = range.first + range.count;
    for (std::int64_t low = range.first; low < layer_end;) {
      const SubgroupId subgroup{static_cast<std::int32_t>(low / geometry.subgroup_elements)};
      const std::int64_t subgroup_first = geometry.first_element(subgroup);
      const std::int64_t high =
          std::min(layer_end, subgroup_first + geometry.element_count(subgroup));
      if (low == subgroup_first) first_segment_.push_back(segment_count_);
      layer.segments.push_back(cut(layer, subgroup, low - range.first, high - range.first));
      segment_count_ += 1;
      low = high;
    }
  }
  first_segment_.push_back(segment_count_);
}

NormPlan::Segment NormPlan::cut(Layer& layer, SubgroupId subgroup, std::int64_t first,
                                std::int64_t end) {
  const auto add_part = [&layer](std::int64_t from, std::int64_t to) {
    layer.parts.push_back({from, to - from});
    return static_cast<std::int32_t>(std::ssize(layer.parts) - 1);
  };
  Segment segment{.subgroup = subgroup};
  std::int64_t whole_first = round_up(first, kNormBlockElements);
  // The layer's last block is whole where the layer ends.
  const std::int64_t whole_end =
      end == layer.element_count ? end : end / kNormBlockElements * kNormBlockElements;
  if (first < whole_first) {
    whole_first = std::min(whole_first, end);
    segment.part_before = add_part(first, whole_first);
  }
  segment.first_block = divide_up(whole_first, kNormBlockElements);
  segment.block_count =
      std::max<std::int64_t>(0, divide_up(whole_end, kNormBlockElements) - segment.first_block);
  const std::int64_t after = std::max(whole_first, whole_end);
  if (after < end) segment.part_after = add_part(after, end);
  return segment;
}

std::int64_t NormPlan::part_elements(LayerId layer) const {
  std::int64_t count = 0;
  for (const NormPart& part : parts(layer)) count += part.count;
  return count;
}

std::int64_t NormPlan::largest_sum_count() const {
  std::int64_t largest = 0;
  for (const LayerId layer : ids_of(layers_)) largest = std::max(largest, sum_count(layer));
  return largest;
}

void NormPlan::sum_squares(LayerId layer, const std::byte* gradient, optimizer::GradientKind kind,
                           std::span<double> sums) const {
  const auto sum_of = [&](std::int64_t first, std::int64_t count) {
    return optimizer::gradient_stats(gradient + first * bytes_of(kind), kind, count).sum_of_squares;
  };
  const Layer& of = layers_[layer];
  auto into = sums.begin();
  for (std::int64_t first = 0; first < of.element_count; first += kNormBlockElements) {
    *into++ = sum_of(first, std::min(kNormBlockElements, of.element_count - first));
  }
  for (const NormPart& part : of.parts) *into++ = sum_of(part.layer_offset, part.count);
}

GradientStats NormPlan::add_up(LayerId layer, std::span<const double> sums,
                               std::span<GradientStats> segments) const {
  const Layer& of = layers_[layer];
  const auto blocks = sums.first(static_cast<std::size_t>(of.block_count));
  const auto parts = sums.subspan(blocks.size(), of.parts.size());
  auto into = segments.begin() + of.first_segment;
  for (const Segment& segment : of.segments) {
    GradientStats stats;
    if (segment.part_before >= 0)
      stats = with_sum(stats, parts[static_cast<std::size_t>(segment.part_before)]);
    for (const double sum : blocks.subspan(static_cast<std::size_t>(segment.first_block),
                                           static_cast<std::size_t>(segment.block_count))) {
      stats = with_sum(stats, sum);
    }
    if (segment.part_after >= 0)
      stats = with_sum(stats, parts[static_cast<std::size_t>(segment.part_after)]);
    *into++ = stats;
  }
  GradientStats whole;
  for (const double sum : blocks) whole = with_sum(whole, sum);
  return whole;
}

GradientStats NormPlan::add_up(SubgroupId subgroup, std::span<const GradientStats> segments) const {
  const std::int32_t end = first_segment_[SubgroupId{index_of(subgroup) + 1}];
  GradientStats total;
  for (std::int32_t s = first_segment_[subgroup]; s < end; ++s) {
    total = optimizer::add_block(total, segments[static_cast<std::size_t>(s)]);
  }
  return total;
}

std::optional<NormPlan::Place> NormPlan::not_finite(std::span<const GradientStats> segments) const {
  for (std::int32_t l = layers_.count(); l-- > 0;) {
    const Layer& layer = layers_[LayerId{l}];
    for (std::size_t s = layer.segments.size(); s-- > 0;) {
      const std::size_t of_model = static_cast<std::size_t>(layer.first_segment) + s;
      if (!segments[of_model].finite) return Place{LayerId{l}, layer.segments[s].subgroup};
    }
  }
  return std::nullopt;
}

}  // namespace sluice::offload
