#pragma once
// The outcome of one analysis. Silence is none of the three: whoever shows an analysis shows this.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::analyze {

enum class Outcome : std::uint8_t {
  answer,          // it found what it says
  nothing_found,   // it looked, and `why` says at how much
  could_not_look,  // what it needs is not there, and `why` says what
};
std::string_view outcome_name(Outcome outcome);  // "could not look"

inline constexpr std::string_view kLookedFor = "What was looked for";

// "no step has ended" as "No step has ended.".
std::string sentence_of(std::string words);

struct Answer {
  std::string of;  // "slow steps"
  Outcome outcome = Outcome::could_not_look;
  std::string why;             // no sentence of its own: "58 steps"
  bool is_of_finding = false;  // a detector's of findings.h

  // "Slow steps: nothing found (58 steps)."
  std::string words() const;
};

// The names of those with a result, as one line: "Answered: time by cause, links."; "" where there
// are none.
std::string answered_words(std::span<const Answer> answers);

// The others, which have a line each: first those that could not look. Detectors of findings with
// one outcome share a line.
std::vector<Answer> without_result(std::span<const Answer> answers);

}  // namespace sluice::analyze
