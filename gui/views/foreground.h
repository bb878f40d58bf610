#pragma once
// Views that shall come to the front of their docks, one a frame, in the order of asking.
//
// Thread contract: the frame thread.

#include <string>
#include <vector>

namespace sluice::gui {

class Foreground {
 public:
  // By the view's title; a view that is closed is opened.
  void bring(const std::string& title) { titles_.push_back(title); }
  // Before those that were asked for, so that they stay the last.
  void bring_before_others(const std::vector<std::string>& titles) {
    titles_.insert(titles_.begin(), titles.begin(), titles.end());
  }
  // The next one; empty: none.
  std::string take() {
    if (titles_.empty()) return {};
    std::string title = titles_.front();
    titles_.erase(titles_.begin());
    return title;
  }
  bool is_empty() const { return titles_.empty(); }

 private:
  std::vector<std::string> titles_;
};

}  // namespace sluice::gui
