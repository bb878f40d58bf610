#pragma once
// A comparison in sentences: the command, the page and the window say the same.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

#include "profiler/analyze/comparison.h"

namespace sluice::analyze {

struct ComparisonWords {
  // "B is faster: a step takes 558 ms, 12.3 % less than the 636 ms of A; noise +-1.2 %."
  std::string headline;
  // By phases: "update takes 70.0 ms less; forward and backward differ by less than their noise."
  // "": there are no phases to say it of, or the runs cannot be compared.
  std::string where;
};
// `plus_minus`: as whoever shows it can write it.
ComparisonWords words_of(const Comparison& comparison, std::string_view plus_minus = "+-");

// Beside a figure: "MORE, noise +-1.2 %", "within the noise +-1.2 %", "the same". A loss is one
// value and bytes are exact: they have no noise, and nothing is said of it.
std::string judgement_of(const ComparedFigure& figure, std::string_view plus_minus = "+-");

// "A and B cannot be compared: batch and clock differ." "": they can be.
std::string incomparable_words(const Comparability& comparability);

}  // namespace sluice::analyze
