// Do 8-bit moments follow? A step changes exp_avg_sq by a thousandth, a code by a sixteenth: what
// rounds to the nearest stands still, and what has its scale rounded drifts away. So AdamW goes on
// for 6,000 steps on gradients that get smaller, beside moments in double and state in fp32. The
// numbers are made of integers, so that they are the same everywhere.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/optimizer/split_update.h"
#include "tests/base/stored_memory.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::optimizer {
namespace {

constexpr std::int64_t kDriftCount = 64 * kGroupElements;
constexpr std::int64_t kDriftSteps = 6000;
constexpr std::int64_t kDecaySteps = 3000;
constexpr double kDriftLr = 1e-3;

enum class Sent : std::uint8_t { all, two_percent };

// Gradients, scales spread 1:30 in a group, that become 30 times as small in the first half.
class FadingGradients {
 public:
  explicit FadingGradients(Sent sent) : sent_(sent), scales_(kDriftCount), values_(kDriftCount) {
    for (std::size_t i = 0; i < scales_.size(); ++i) {
      const double part = mixed(static_cast<std::uint32_t>(i), 1) / 4294967296.0;
      scales_[i] = static_cast<float>(1e-3 * std::pow(30.0, part));
    }
  }

  const std::vector<float>& at(std::int64_t step) {
    const double part = static_cast<double>(std::min(step, kDecaySteps)) / kDecaySteps;
    const auto of_step = static_cast<float>(std::pow(30.0, -part));
    const std::uint32_t key = mixed(static_cast<std::uint32_t>(step), 2);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const std::uint32_t bits = mixed(static_cast<std::uint32_t>(i), key);
      const bool is_sent = sent_ == Sent::all || mixed(bits, 3) < 0xffffffffu / 50;
      values_[i] = is_sent ? bell(bits) * scales_[i] * of_step : 0.0f;
    }
    return values_;
  }

 private:
  // Mean 0, deviation 1: the sum of four even bytes.
  static float bell(std::uint32_t bits) {
    const auto sum = (bits & 255u) + (bits >> 8 & 255u) + (bits >> 16 & 255u) + (bits >> 24);
    return (static_cast<float>(sum) - 510) / 147.8f;
  }

  Sent sent_;
  std::vector<float> scales_;
  std::vector<float> values_;
};

// Weights before and after a step: the most that one moved, in lr.
class Moves {
 public:
  void note(const std::vector<float>& weights) {
    for (std::size_t i = 0; i < weights.size() && !before_.empty(); ++i)
      largest_ = std::max(largest_, std::abs(double{weights[i]} - before_[i]) / kDriftLr);
    before_ = weights;
  }
  double largest() const { return largest_; }

 private:
  std::vector<float> before_;
  double largest_ = 0;
};

// sqrt(v) decoded, of sqrt(v) in double: how much at some part of all elements.
struct Followed {
  double low, middle, high;  // 5, 50 and 95 %
};

class Drift {
 public:
  Drift(Sent sent, const StateFormat& format)
      : gradients_(sent),
        split_(stored_arrays(RuleKind::adamw, format), kDriftCount),
        plain_(3, std::vector<float>(kDriftCount)),
        squares_(kDriftCount) {}

  void run_until(std::int64_t step) {
    while (step_ < step) take_step();
  }
  Followed followed() {
    const std::vector<float> decoded = split_.decoded(2);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < squares_.size(); ++i) {
      if (squares_[i] > 0) ratios.push_back(std::sqrt(decoded[i] / squares_[i]));
    }
    std::sort(ratios.begin(), ratios.end());
    const auto at = [&ratios](std::size_t percent) {
      return ratios[ratios.size() * percent / 100];
    };
    return {at(5), at(50), at(95)};
  }
  double largest_move() const { return split_moves_.largest(); }
  double largest_move_in_fp32() const { return plain_moves_.largest(); }

 private:
  void take_step() {
    ++step_;
    const std::vector<float>& gradient = gradients_.at(step_);
    UpdateOptions options;
    options.lr = kDriftLr;
    options.weight_decay = 0;
    const UpdateScalars scalars = update_scalars(options, step_, 1.0);
    update(scalars, SplitArrays{.state = split_.span(),
                                .gradient = gradient.data(),
                                .gradient_kind = GradientKind::fp32,
                                .rounding = CodeRounding::of_step(1, step_),
                                .first_flat_index = 0});
    update(scalars, UpdateArrays{.element_count = kDriftCount,
                                 .state = {plain_[0].data(), plain_[1].data(), plain_[2].data()},
                                 .gradient = gradient.data()});
    for (std::size_t i = 0; i < squares_.size(); ++i)
      squares_[i] = options.beta2 * squares_[i] + (1 - options.beta2) * gradient[i] * gradient[i];
    split_moves_.note(split_.decoded(0));
    plain_moves_.note(plain_[0]);
  }

  FadingGradients gradients_;
  StoredMemory split_;
  std::vector<std::vector<float>> plain_;
  std::vector<double> squares_;
  std::int64_t step_ = 0;
  Moves split_moves_;
  Moves plain_moves_;
};

TEST_CASE(
    "compact moments follow those in double for thousands of steps, and no update stands out") {
  for (const Sent sent : {Sent::all, Sent::two_percent}) {
    Drift drift(sent, {StateFormatKind::compact, 16});
    for (const std::int64_t step : {std::int64_t{500}, kDecaySteps, kDriftSteps}) {
      drift.run_until(step);
      const Followed followed = drift.followed();
      CAPTURE(static_cast<int>(sent), step, followed.low, followed.middle, followed.high);
      CHECK(followed.middle == Approx(1).margin(0.01));
      CHECK(followed.low > 0.84);
      CHECK(followed.high < 1.19);
    }
    CAPTURE(static_cast<int>(sent), drift.largest_move(), drift.largest_move_in_fp32());
    CHECK(drift.largest_move_in_fp32() < 2.5);
    CHECK(drift.largest_move() < 5);
  }
}

}  // namespace
}  // namespace sluice::optimizer
