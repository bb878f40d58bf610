#include "core/model/rotary_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::model {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

double llama3_scaled(const Rotary& rotary, double frequency) {
  const double turns = static_cast<double>(rotary.original_sequence) * frequency / kTurn;
  if (turns > rotary.high_frequency) return frequency;
  const double slow = frequency / rotary.factor;
  if (turns < rotary.low_frequency) return slow;
  const double share =
      (turns - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
  return (1 - share) * slow + share * frequency;
}

// The pair, as a fraction, that turns so many times in the original context.
double pair_that_turns(const Rotary& rotary, std::int64_t head_width, double times) {
  return static_cast<double>(head_width) *
         std::log(static_cast<double>(rotary.original_sequence) / (times * kTurn)) /
         (2 * std::log(rotary.theta));
}

// 0 for pairs that stay as fast as they are, 1 for those that are slowed down.
double yarn_slowed_share(const Rotary& rotary, std::int64_t head_width, std::int64_t pair) {
  const double first =
      std::max(std::floor(pair_that_turns(rotary, head_width, rotary.beta_fast)), 0.0);
  double last = std::min(std::ceil(pair_that_turns(rotary, head_width, rotary.beta_slow)),
                         static_cast<double>(head_width - 1));
  if (first == last) last += 0.001;  // as transformers has it: no division by zero
  return std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
}

double scaled(const Rotary& rotary, std::int64_t head_width, std::int64_t pair, double frequency) {
  switch (rotary.scaling) {
    case RopeScaling::none:
      break;
    case RopeScaling::linear:
      return frequency / rotary.factor;
    case RopeScaling::llama3:
      return llama3_scaled(rotary, frequency);
    case RopeScaling::yarn: {
      const double share = yarn_slowed_share(rotary, head_width, pair);
      return share * frequency / rotary.factor + (1 - share) * frequency;
    }
  }
  return frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t head_width) {
  std::vector<double> frequencies;
  for (std::int64_t pair = 0; pair < head_width / 2; ++pair) {
    const double frequency =
        std::pow(rotary.theta, -2 * static_cast<double>(pair) / static_cast<double>(head_width));
    frequencies.push_back(scaled(rotary, head_width, pair, frequency));
  }
  return frequencies;
}

double rotary_attention_factor(const Rotary& rotary) {
  if (rotary.scaling != RopeScaling::yarn) return 1;
  if (rotary.attention_factor > 0) return rotary.attention_factor;
  return rotary.factor > 1 ? 0.1 * std::log(rotary.factor) + 1 : 1;
}

}  // namespace sluice::model
