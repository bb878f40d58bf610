#pragma once
// A run that a view wants to be opened in the window, in place of this one.
//
// Thread contract: the frame thread.

#include <string>
#include <utility>

namespace sluice::gui {

class RunRequest {
 public:
  void put(std::string path) { path_ = std::move(path); }
  // Once; empty: there is none.
  std::string take() { return std::exchange(path_, {}); }

 private:
  std::string path_;
};

}  // namespace sluice::gui
