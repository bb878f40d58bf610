#include "cli/answers_text.h"

#include <fmt/format.h>

#include "cli/terminal.h"

namespace sluice::cli {

std::string answers_text(std::span<const analyze::Answer> answers, int columns) {
  std::string text = fmt::format("{}:\n", analyze::kLookedFor);
  const auto add = [&](const std::string& words) {
    text += "  " + wrapped(words, columns - 2, "    ");
  };
  for (const analyze::Answer& answer : analyze::without_result(answers)) add(answer.words());
  const std::string answered = analyze::answered_words(answers);
  if (!answered.empty()) add(answered);
  return text;
}

nlohmann::ordered_json answers_json(std::span<const analyze::Answer> answers) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const analyze::Answer& answer : answers) {
    rows.push_back({{"of", answer.of},
                    {"outcome", analyze::outcome_name(answer.outcome)},
                    {"why", answer.why}});
  }
  return rows;
}

}  // namespace sluice::cli
