#pragma once
// How far a command is and how long it still takes: one line on stderr that is drawn anew, where
// that is a terminal and the work takes long enough to ask.
//
// Thread contract: main thread.

#include <string_view>

#include "base/units.h"

namespace sluice::cli {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { finish(); }

  // `share` of the whole, 0 to 1; `what` is done now.
  void show(double share, std::string_view what = {});
  // Where nobody knows the whole: how long it has gone on.
  void show_elapsed(std::string_view what);
  void finish();  // takes the line away

 private:
  bool is_due();
  void draw(std::string_view how_far, std::string_view what);

  const bool draws_;
  const TimeNs begin_ts_;
  TimeNs shown_ts_ = 0;
};

}  // namespace sluice::cli
