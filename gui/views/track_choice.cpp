#include "gui/views/track_choice.h"

#include <algorithm>
#include <sstream>

#include "base/small_letters.h"

namespace sluice::gui {
namespace {

// Blanks in names count as underlines, so that one word can hold a whole name.
std::string one_word(std::string_view name) {
  std::string word(name);
  std::ranges::replace(word, ' ', '_');
  return word;
}

}  // namespace

void TrackChoice::set_text(const std::string& text) {
  text_ = text;
  wanted_.clear();
  unwanted_.clear();
  std::istringstream words(small_letters(text));
  for (std::string word; words >> word;) {
    if (word.front() != '-') {
      wanted_.push_back(word);
    } else if (word.size() > 1) {
      unwanted_.push_back(word.substr(1));
    }
  }
}

bool TrackChoice::shows(std::string_view group, std::string_view name) const {
  if (text_.empty()) return true;
  const std::string whole = small_letters(one_word(std::string(group) + " " + std::string(name)));
  const auto holds = [&whole](const std::string& word) {
    return whole.find(word) != std::string::npos;
  };
  if (std::ranges::any_of(unwanted_, holds)) return false;
  return wanted_.empty() || std::ranges::any_of(wanted_, holds);
}

void TrackChoice::hide(std::string_view name) {
  set_text(text_ + (text_.empty() ? "-" : " -") + one_word(name));
}

void TrackChoice::show_only(std::string_view group) { set_text(one_word(group)); }

void TrackChoice::toggle_pin(const std::string& group) {
  if (pinned_.erase(group) == 0) pinned_.insert(group);
}

}  // namespace sluice::gui
