#include "core/compress/sampled_top_k.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/split_mix.h"
#include "core/compress/detail/phases.h"
#include "core/optimizer/update_rule.h"

namespace sluice::compress {
namespace {

// Every point is a cache miss; kSampleBatch points are asked for before the first is waited for.
constexpr std::int64_t kSampleBatch = 64;

std::int64_t sample_position(std::uint64_t seed, std::int64_t point, std::int64_t element_count) {
  if (element_count <= kSampleElements) return point;
  const std::int64_t first = point * element_count / kSampleElements;
  const std::int64_t length = (point + 1) * element_count / kSampleElements - first;
  const std::uint64_t random = split_mix(seed, static_cast<std::uint64_t>(point)) >> 32;
  return first + static_cast<std::int64_t>((random * static_cast<std::uint64_t>(length)) >> 32);
}

// The magnitude of the k-th largest, level by level.
std::uint32_t kth_magnitude(std::span<const float> values, std::int64_t k,
                            detail::Histogram& histogram) {
  const auto count = static_cast<std::int64_t>(values.size());
  std::uint32_t prefix = 0;
  for (const detail::Level& level : detail::kLevels) {
    histogram.clear();
    if (prefix == 0 && level.shift == detail::kLevels[0].shift) {
      detail::count_top(values.data(), count, histogram);
    } else {
      detail::count_within(values.data(), count, prefix, level, histogram);
    }
    histogram.add_ways();
    std::array<std::uint64_t, detail::kBins> bins;
    std::copy(histogram.bins.begin(), histogram.bins.end(), bins.begin());
    const detail::Boundary boundary = detail::find_boundary(bins, k);
    k -= boundary.above;
    prefix = (prefix << level.bits) | boundary.bin;
  }
  return prefix;
}

}  // namespace

SampledTopKSelector::SampledTopKSelector(const SelectorSize& size)
    : slices_(static_cast<std::size_t>(size.slice_count)), sample_(kSampleElements) {
  CHECK_GE(size.kept_capacity, 0);
  CHECK_GE(size.slice_count, 1);
  for (Slice& slice : slices_) {
    slice.indices.resize(static_cast<std::size_t>(size.kept_capacity));
    slice.values.resize(static_cast<std::size_t>(size.kept_capacity));
  }
}

void SampledTopKSelector::begin(std::span<const float> values, const SampleOptions& options,
                                const KeptRoom& room) {
  values_ = values.data();
  feedback_ = {};
  start(static_cast<std::int64_t>(values.size()), options, room);
}

void SampledTopKSelector::begin(const FeedbackInput& input, const SampleOptions& options,
                                const KeptRoom& room) {
  CHECK_EQ(input.gradient.size(), input.residual.size());
  values_ = input.residual.data();
  feedback_ = input;
  start(static_cast<std::int64_t>(input.gradient.size()), options, room);
}

void SampledTopKSelector::start(std::int64_t element_count, const SampleOptions& options,
                                const KeptRoom& room) {
  CHECK(is_done());
  CHECK_LE(element_count, kMaxElements);
  CHECK_LE(room.capacity, static_cast<std::int64_t>(slices_[0].indices.size()));
  element_count_ = element_count;
  options_ = options;
  room_ = room;
  selection_ = {};
  for (int s = 0; s < slice_count(); ++s) {
    const detail::SliceRange range = detail::slice_range(element_count, slice_count(), s);
    slices_[static_cast<std::size_t>(s)].first = range.first;
    slices_[static_cast<std::size_t>(s)].count = range.count;
  }
  phase_ = element_count > 0 ? Phase::sample : Phase::done;
}

void SampledTopKSelector::run_slice(int index) {
  Slice& slice = slices_[static_cast<std::size_t>(index)];
  switch (phase_) {
    case Phase::sample:
      return sample_slice(index);
    case Phase::collect:
      return collect_slice(slice);
    case Phase::gather:
      return gather_slice(slice);
    case Phase::done:
      return;
  }
}

float SampledTopKSelector::value_at(std::int64_t index) const {
  if (feedback_.residual.empty()) return values_[index];
  const auto i = static_cast<std::size_t>(index);
  return optimizer::stored_float(
      std::fma(feedback_.gradient[i], feedback_.scale, feedback_.residual[i]));
}

void SampledTopKSelector::prefetch(std::int64_t index) const {
  __builtin_prefetch(values_ + index);
  if (!feedback_.residual.empty()) __builtin_prefetch(feedback_.gradient.data() + index);
}

void SampledTopKSelector::sample_slice(int slice) {
  const std::int64_t points = std::min(element_count_, kSampleElements);
  const std::int64_t end = points * (slice + 1) / slice_count();
  std::array<std::int64_t, kSampleBatch> positions;
  for (std::int64_t first = points * slice / slice_count(); first < end; first += kSampleBatch) {
    const auto count = static_cast<std::size_t>(std::min(kSampleBatch, end - first));
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t point = first + static_cast<std::int64_t>(k);
      positions[k] = sample_position(options_.seed, point, element_count_);
      prefetch(positions[k]);
    }
    for (std::size_t k = 0; k < count; ++k)
      sample_[static_cast<std::size_t>(first) + k] = value_at(positions[k]);
  }
}

void SampledTopKSelector::collect_slice(Slice& slice) {
  const bool accumulates = !feedback_.residual.empty();
  const std::int64_t step =
      accumulates ? kFeedbackBlockElements : std::max<std::int64_t>(slice.count, 1);
  const std::int64_t end = slice.first + slice.count;
  slice.found_count = 0;
  for (std::int64_t first = slice.first; first < end; first += step) {
    const std::int64_t count = std::min(step, end - first);
    if (accumulates) accumulate_residual(feedback_.part(first, count));
    const KeptRoom left{.indices = slice.indices.data() + slice.found_count,
                        .values = slice.values.data() + slice.found_count,
                        .capacity = room_.capacity - slice.found_count};
    slice.found_count += detail::keep_from({.values = values_ + first,
                                            .first_index = static_cast<std::uint32_t>(first),
                                            .count = count},
                                           selection_.threshold, left);
  }
}

void SampledTopKSelector::gather_slice(const Slice& slice) {
  const auto kept = static_cast<std::size_t>(slice.kept_count);
  std::copy_n(slice.indices.data(), kept, room_.indices + slice.kept_first);
  std::copy_n(slice.values.data(), kept, room_.values + slice.kept_first);
  if (!feedback_.residual.empty())
    clear_residual(std::span(slice.indices).first(kept), feedback_.residual);
}

void SampledTopKSelector::end_phase() {
  switch (phase_) {
    case Phase::sample: {
      const std::int64_t points = std::min(element_count_, kSampleElements);
      selection_.threshold =
          kth_magnitude(std::span(sample_).first(static_cast<std::size_t>(points)),
                        kept_count(options_.density, points), histogram_);
      phase_ = Phase::collect;
      return;
    }
    case Phase::collect:
      plan_gathering();
      phase_ = Phase::gather;
      return;
    case Phase::gather:
    case Phase::done:
      phase_ = Phase::done;
      return;
  }
}

void SampledTopKSelector::plan_gathering() {
  for (Slice& slice : slices_) {
    slice.kept_first = selection_.kept_count;
    slice.kept_count = std::min(slice.found_count, room_.capacity - selection_.kept_count);
    selection_.kept_count += slice.kept_count;
  }
}

SampledSelection sampled_top_k(std::span<const float> values, const SampleOptions& options,
                               int thread_count, SampledTopKSelector& selector,
                               const KeptRoom& room) {
  selector.begin(values, options, room);
  detail::run_phases(selector, thread_count);
  return selector.selection();
}

SampledSelection sampled_top_k(const FeedbackInput& input, const SampleOptions& options,
                               int thread_count, SampledTopKSelector& selector,
                               const KeptRoom& room) {
  selector.begin(input, options, room);
  detail::run_phases(selector, thread_count);
  return selector.selection();
}

}  // namespace sluice::compress
