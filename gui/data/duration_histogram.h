#pragma once
// How long spans of a kind took, in classes an eighth of an octave wide: quantiles to 5 % of any
// number of spans in 4 KiB, added to while a run is live.
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

  void add(TimeNs dur_ns) {
    counts_[class_of(dur_ns)] += 1;
    count_ += 1;
  }
  std::int64_t count() const { return count_; }
  // The middle of the class in which that share of the spans ends; 0 without spans.
  TimeNs quantile(double share) const {
    const double wanted = share * static_cast<double>(count_);
    double below = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      below += counts_[c];
      if (counts_[c] > 0 && below >= wanted) return (lower(c) + lower(c + 1)) / 2;
    }
    return 0;
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
  std::array<std::uint32_t, kClasses> counts_{};
  std::int64_t count_ = 0;
};

}  // namespace sluice::gui
