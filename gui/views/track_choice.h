#pragma once
// Which tracks of the timeline somebody wants to see, by name, and which groups stand first.
//
// Thread contract: one thread at a time.

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::gui {

class TrackChoice {
 public:
  // Words with blanks between them: a track with any of them in its group's or its own name is
  // shown, and none with a word behind a minus ("csd0 csd1 -update"). Upper and lower case are the
  // same; "": all.
  void set_text(const std::string& text);
  const std::string& text() const { return text_; }
  bool shows(std::string_view group, std::string_view name) const;
  void hide(std::string_view name);  // one word more
  void show_only(std::string_view group);

  bool is_pinned(const std::string& group) const { return pinned_.contains(group); }
  void toggle_pin(const std::string& group);

 private:
  std::string text_;
  std::vector<std::string> wanted_;  // in lower case
  std::vector<std::string> unwanted_;
  std::set<std::string> pinned_;
};

}  // namespace sluice::gui
