#include "profiler/analyze/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>

namespace sluice::analyze {

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::answer:
      return "answer";
    case Outcome::nothing_found:
      return "nothing found";
    case Outcome::could_not_look:
      return "could not look";
  }
  return "";
}

std::string sentence_of(std::string words) {
  if (words.empty()) return words;
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words + ".";
}

std::string Answer::words() const {
  return sentence_of(fmt::format("{}: {} ({})", of, outcome_name(outcome), why));
}

std::string answered_words(std::span<const Answer> answers) {
  std::string words;
  for (const Answer& answer : answers) {
    if (answer.outcome != Outcome::answer) continue;
    words += (words.empty() ? "Answered: " : ", ") + answer.of;
  }
  return words.empty() ? words : words + ".";
}

namespace {

// Those that could not look, by what is missing; those that found nothing in one line.
void add_detectors(std::span<const Answer> answers, Outcome outcome, std::vector<Answer>& others) {
  const std::size_t first = others.size();
  for (const Answer& answer : answers) {
    if (!answer.is_of_finding || answer.outcome != outcome) continue;
    const bool is_blind = outcome == Outcome::could_not_look;
    const std::string why = is_blind ? answer.why : "";
    const auto same =
        std::find_if(others.begin() + static_cast<std::ptrdiff_t>(first), others.end(),
                     [&](const Answer& other) { return other.why == why; });
    if (same == others.end()) {
      others.push_back({answer.of, outcome, why, true});
    } else {
      same->of += ", " + answer.of;
    }
  }
  for (std::size_t i = first; i < others.size() && outcome == Outcome::nothing_found; ++i) {
    others[i].why = others[i].of;
    others[i].of = "findings";
  }
}

}  // namespace

std::vector<Answer> without_result(std::span<const Answer> answers) {
  std::vector<Answer> others;
  for (const Outcome outcome : {Outcome::could_not_look, Outcome::nothing_found}) {
    std::ranges::copy_if(answers, std::back_inserter(others), [outcome](const Answer& answer) {
      return answer.outcome == outcome && !answer.is_of_finding;
    });
    add_detectors(answers, outcome, others);
  }
  return others;
}

}  // namespace sluice::analyze
