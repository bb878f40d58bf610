#include "core/model/span_lengths.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::model {
namespace {

// To the nearest, halves to the even one, as the example's language rounds.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

SpanLengths lengths_of_text(const SpanRule& rule, std::int64_t text) {
  SpanLengths lengths{.text = text};
  lengths.taken = std::clamp<std::int64_t>(rounded(static_cast<double>(text) * rule.share), 1,
                                           std::max<std::int64_t>(1, text - 1));
  lengths.spans = std::clamp<std::int64_t>(
      rounded(static_cast<double>(lengths.taken) / rule.length), 1,
      std::max<std::int64_t>(1, std::min(lengths.taken, text - lengths.taken)));
  lengths.targets = lengths.taken + lengths.spans + 1;
  return lengths;
}

}  // namespace

// A source never becomes shorter where its text grows, so the search may halve.
SpanLengths span_lengths(const SpanRule& rule, std::int64_t sequence) {
  CHECK_GE(sequence, kLeastSource);
  std::int64_t fits = 2;
  std::int64_t too_long = 2 * sequence;
  while (lengths_of_text(rule, too_long).source() <= sequence) too_long *= 2;
  while (too_long - fits > 1) {
    const std::int64_t middle = fits + (too_long - fits) / 2;
    (lengths_of_text(rule, middle).source() <= sequence ? fits : too_long) = middle;
  }
  return lengths_of_text(rule, fits);
}

}  // namespace sluice::model
