#include "cli/old_names.h"

#include <span>
#include <string_view>

namespace sluice::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kColour = "--color";  // an option of every command, with a value

bool is_option(const std::string& word) { return word.size() > 1 && word.starts_with('-'); }

// The place of the command's name; the number of words where there is none.
std::size_t command_place(const Words& words) {
  std::size_t place = 0;
  while (place < words.size() && is_option(words[place])) place += words[place] == kColour ? 2 : 1;
  return std::min(place, words.size());
}

// `predict RUN.db key=value...`
void add_prediction(std::span<const std::string> rest, Words& now) {
  now.emplace_back("simulate");
  now.emplace_back("--fit");
  const char* next_option = "--like";  // the first argument is the run
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (is_option(rest[i])) {
      now.push_back(rest[i]);
      if (rest[i] == kColour && i + 1 < rest.size()) now.push_back(rest[++i]);
      continue;
    }
    now.emplace_back(next_option);
    now.push_back(rest[i]);
    next_option = "--set";
  }
}

// `plan` with its options; a recorded run was `--from RUN.db`.
void add_plan(std::span<const std::string> rest, Words& now) {
  constexpr std::string_view kFrom = "--from";
  now.emplace_back("tune");
  now.emplace_back("--placement");
  for (const std::string& word : rest) {
    if (word == kFrom) continue;
    const bool holds_run = word.starts_with(kFrom) && word[kFrom.size()] == '=';
    now.push_back(holds_run ? word.substr(kFrom.size() + 1) : word);
  }
}

}  // namespace

std::optional<Words> in_new_words(const Words& words) {
  const std::size_t place = command_place(words);
  if (place == words.size()) return std::nullopt;
  Words now(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(place));
  const std::span<const std::string> rest = std::span(words).subspan(place + 1);
  if (words[place] == "predict") {
    add_prediction(rest, now);
  } else if (words[place] == "plan") {
    add_plan(rest, now);
  } else {
    return std::nullopt;
  }
  return now;
}

}  // namespace sluice::cli
