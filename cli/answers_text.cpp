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

}  // namespace sluice::cli
