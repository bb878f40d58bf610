#include "core/compress/top_k.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/check.h"
#include "core/compress/detail/phases.h"

namespace sluice::compress {

TopKSelector::TopKSelector(const SelectorSize& size)
    : slices_(static_cast<std::size_t>(size.slice_count)),
      candidate_indices_(static_cast<std::size_t>(2 * size.kept_capacity)),
      candidate_values_(candidate_indices_.size()) {
  CHECK_GE(size.kept_capacity, 0);
  CHECK_GE(size.slice_count, 1);
}

void TopKSelector::begin(std::span<const float> values, std::int64_t k, const KeptRoom& room) {
  values_ = values.data();
  feedback_ = {};
  start(static_cast<std::int64_t>(values.size()), k, room);
}

void TopKSelector::begin(const FeedbackInput& input, std::int64_t k, const KeptRoom& room) {
  CHECK_EQ(input.gradient.size(), input.residual.size());
  values_ = input.residual.data();
  feedback_ = input;
  start(static_cast<std::int64_t>(input.gradient.size()), k, room);
}

void TopKSelector::start(std::int64_t element_count, std::int64_t k, const KeptRoom& room) {
  CHECK(is_done());
  CHECK_LE(element_count, kMaxElements);
  CHECK_GE(k, 0);
  CHECK_LE(k, element_count);
  CHECK_LE(k, room.capacity);
  CHECK_LE(2 * k, static_cast<std::int64_t>(candidate_indices_.size()));
  room_ = room;
  has_candidates_ = false;
  level_ = 0;
  prefix_ = 0;
  wanted_ = k;
  for (int s = 0; s < slice_count(); ++s) {
    const detail::SliceRange range = detail::slice_range(element_count, slice_count(), s);
    Slice& slice = slices_[static_cast<std::size_t>(s)];
    slice.first = range.first;
    slice.count = range.count;
    slice.above = 0;
  }
  const bool accumulates = !feedback_.residual.empty();
  phase_ = k > 0 || accumulates ? Phase::count : Phase::done;
}

void TopKSelector::run_slice(int index) {
  Slice& slice = slices_[static_cast<std::size_t>(index)];
  switch (phase_) {
    case Phase::count:
      return count_slice(slice);
    case Phase::collect: {
      const KeptRoom place{.indices = candidate_indices_.data() + slice.candidate_first,
                           .values = candidate_values_.data() + slice.candidate_first,
                           .capacity = slice.candidate_count};
      const std::uint32_t floor = prefix_ << detail::kLevels[0].shift;
      CHECK_EQ(detail::keep_from(input_of(slice), floor, place), slice.candidate_count);
      return;
    }
    case Phase::refine: {
      const detail::ElementRun searched = searched_of(slice);
      slice.histogram.clear();
      detail::count_within(searched.values, searched.count, prefix_, detail::kLevels[level_],
                           slice.histogram);
      return slice.histogram.add_ways();
    }
    case Phase::keep:
      return keep_slice(slice);
    case Phase::done:
      return;
  }
}

void TopKSelector::count_slice(Slice& slice) {
  slice.histogram.clear();
  if (feedback_.residual.empty()) {
    detail::count_top(values_ + slice.first, slice.count, slice.histogram);
    return slice.histogram.add_ways();
  }
  const std::int64_t end = slice.first + slice.count;
  for (std::int64_t first = slice.first; first < end; first += kFeedbackBlockElements) {
    const std::int64_t count = std::min(kFeedbackBlockElements, end - first);
    accumulate_residual(feedback_.part(first, count));
    detail::count_top(values_ + first, count, slice.histogram);
  }
  slice.histogram.add_ways();
}

void TopKSelector::keep_slice(const Slice& slice) {
  const detail::ElementRun searched = searched_of(slice);
  const KeptRoom place{.indices = room_.indices + slice.kept_first,
                       .values = room_.values + slice.kept_first,
                       .capacity = slice.above + slice.ties};
  // Up to the last tie that is kept, ties count; behind it, only what is larger.
  std::int64_t cut = 0;
  if (slice.ties == slice.in_boundary) {
    cut = searched.count;
  } else if (slice.ties > 0) {
    cut = detail::position_after_equal(searched.values, searched.count, threshold_, slice.ties);
  }
  const std::int64_t kept = detail::keep_from(searched.part(0, cut), threshold_, place);
  const KeptRoom rest{.indices = place.indices + kept,
                      .values = place.values + kept,
                      .capacity = place.capacity - kept};
  const std::int64_t larger =
      detail::keep_from(searched.part(cut, searched.count - cut), threshold_ + 1, rest);
  CHECK_EQ(kept + larger, place.capacity);
  if (!feedback_.residual.empty()) {
    clear_residual({place.indices, static_cast<std::size_t>(place.capacity)}, feedback_.residual);
  }
}

detail::ElementRun TopKSelector::input_of(const Slice& slice) const {
  return {.values = values_ + slice.first,
          .first_index = static_cast<std::uint32_t>(slice.first),
          .count = slice.count};
}

detail::ElementRun TopKSelector::searched_of(const Slice& slice) const {
  if (!has_candidates_) return input_of(slice);
  return {.values = candidate_values_.data() + slice.candidate_first,
          .indices = candidate_indices_.data() + slice.candidate_first,
          .count = slice.candidate_count};
}

void TopKSelector::end_phase() {
  switch (phase_) {
    case Phase::count:
    case Phase::refine:
      return after_narrowing();
    case Phase::collect:
      has_candidates_ = true;
      phase_ = Phase::refine;
      return;
    case Phase::keep:
    case Phase::done:
      phase_ = Phase::done;
      return;
  }
}

void TopKSelector::after_narrowing() {
  if (wanted_ == 0) {  // k is 0, and there was only a residual to bring up to date
    phase_ = Phase::done;
    return;
  }
  narrow_boundary();
  if (wants_whole_ || level_ + 1 == detail::kLevels.size()) {
    plan_keeping();
    phase_ = Phase::keep;
    return;
  }
  ++level_;
  phase_ = level_ == 1 && make_candidate_places() ? Phase::collect : Phase::refine;
}

// Finds this level's bits of the boundary from the slices' histograms.
void TopKSelector::narrow_boundary() {
  std::array<std::uint64_t, detail::kBins> totals{};
  for (const Slice& slice : slices_) {
    for (std::size_t bin = 0; bin < detail::kBins; ++bin) totals[bin] += slice.histogram.bins[bin];
  }
  const detail::Boundary boundary = detail::find_boundary(totals, wanted_);
  for (Slice& slice : slices_) {
    const auto& bins = slice.histogram.bins;
    slice.above = std::accumulate(bins.begin() + boundary.bin + 1, bins.end(), slice.above);
    slice.in_boundary = bins[boundary.bin];
  }
  prefix_ = (prefix_ << detail::kLevels[level_].bits) | boundary.bin;
  wanted_ -= boundary.above;
  wants_whole_ = wanted_ == static_cast<std::int64_t>(totals[boundary.bin]);
}

// False if they do not fit.
bool TopKSelector::make_candidate_places() {
  std::int64_t total = 0;
  for (Slice& slice : slices_) {
    slice.candidate_first = total;
    slice.candidate_count = slice.above + slice.in_boundary;
    total += slice.candidate_count;
  }
  return total <= static_cast<std::int64_t>(candidate_indices_.size());
}

// Where each slice's part of the result goes. Ties are kept from the lowest index on.
void TopKSelector::plan_keeping() {
  threshold_ = prefix_ << detail::kLevels[level_].shift;
  std::int64_t ties_left = wanted_;
  std::int64_t kept = 0;
  for (Slice& slice : slices_) {
    slice.ties = std::min(ties_left, slice.in_boundary);
    ties_left -= slice.ties;
    slice.kept_first = kept;
    kept += slice.above + slice.ties;
  }
}

void top_k(std::span<const float> values, std::int64_t k, int thread_count, TopKSelector& selector,
           const KeptRoom& room) {
  selector.begin(values, k, room);
  detail::run_phases(selector, thread_count);
}

void top_k(const FeedbackInput& input, std::int64_t k, int thread_count, TopKSelector& selector,
           const KeptRoom& room) {
  selector.begin(input, k, room);
  detail::run_phases(selector, thread_count);
}

}  // namespace sluice::compress
