#pragma once
// A view: one window, one pair of files. It draws its content from the parts of the session that it
// was made with, and changes nothing else; the shell makes its window, and shows why there is
// nothing where a run has no facts.
//
// Thread contract: the frame thread.

#include <memory>
#include <vector>

namespace sluice::gui {

struct Session;

class View {
 public:
  explicit View(const char* title) : title_(title) {}
  virtual ~View() = default;
  // Its window's name too, so that layouts find it again.
  const char* title() const { return title_; }
  virtual const char* help() const = 0;  // one sentence, for the menu and the palette
  // Called while the run has facts.
  virtual void draw_content() = 0;
  bool is_open = true;

 private:
  const char* title_;
};

// In the order of the menu. `session` lives longer.
std::vector<std::unique_ptr<View>> all_views(Session& session);

}  // namespace sluice::gui
