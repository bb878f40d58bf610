#pragma once
// How long spans of a kind took, in classes an eighth of an octave wide: quantiles to 5 % of any
// number of spans in 4 KiB, never outside of the shortest and the longest, and exact of a few;
// added to while a run is live.
//
// Thread contract: one thread at a time.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/units.h"

namespace sluice::gui {

class DurationHistogram {
 public:
  static constexpr int kClassesAnOctave = 8;
  static constexpr std::size_t kClasses = 64 * kClassesAnOctave;
  static constexpr std::int64_t kExact = 16;

  void add(TimeNs dur_ns) {
    counts_[class_of(dur_ns)] += 1;
    if (count_ < kExact) first_[static_cast<std::size_t>(count_)] = dur_ns;
    shortest_ = count_ == 0 ? dur_ns : std::min(shortest_, dur_ns);
    longest_ = count_ == 0 ? dur_ns : std::max(longest_, dur_ns);
    count_ += 1;
  }
  std::int64_t count() const { return count_; }
  // The middle of the class in which that share of the spans ends, of up to kExact spans the length
  // of the one with which it does; 0 without spans.
  TimeNs quantile(double share) const {
    if (count_ == 0) return 0;
    if (count_ <= kExact) return exact_quantile(share);
    const double wanted = share * static_cast<double>(count_);
    double below = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      below += counts_[c];
      if (counts_[c] > 0 && below >= wanted) {
        return std::clamp((lower(c) + lower(c + 1)) / 2, shortest_, longest_);
      }
    }
    return longest_;
  }
  std::uint32_t count_in(std::size_t index) const { return counts_[index]; }

  static std::size_t class_of(TimeNs dur_ns) {
    const auto value = static_cast<std::uint64_t>(std::max<TimeNs>(1, dur_ns));
    const int octave = 63 - std::countl_zero(value);
    // The three bits behind the first one; short lengths have fewer.
    const std::uint64_t rest = octave >= 3 ? value >> (octave - 3) : value << (3 - octave);
    return static_cast<std::size_t>(octave) * kClassesAnOctave + (rest & 7);
  }
  // The shortest length of a class.
  static TimeNs lower(std::size_t index) {
    const auto octave = static_cast<int>(index / kClassesAnOctave);
    const auto rest = static_cast<double>(index % kClassesAnOctave);
    return static_cast<TimeNs>(std::ldexp(1 + rest / kClassesAnOctave, std::min(octave, 62)));
  }

 private:
  TimeNs exact_quantile(double share) const {
    std::array<TimeNs, kExact> sorted = first_;
    const auto end = sorted.begin() + count_;
    std::sort(sorted.begin(), end);
    const auto rank = static_cast<std::int64_t>(std::ceil(share * static_cast<double>(count_)));
    return sorted[static_cast<std::size_t>(std::clamp<std::int64_t>(rank, 1, count_) - 1)];
  }

  std::array<std::uint32_t, kClasses> counts_{};
  std::array<TimeNs, kExact> first_{};
  std::int64_t count_ = 0;
  TimeNs shortest_ = 0;
  TimeNs longest_ = 0;
};

}  // namespace sluice::gui
