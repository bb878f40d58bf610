#pragma once
// The next measurement of a calibration: one line that is drawn anew on a terminal, and a line for
// each measurement elsewhere.
//
// Thread contract: one thread.

#include <string_view>

namespace sluice::cli {

class CalibrateProgress {
 public:
  void show(std::string_view what, double share, double left_seconds);
  void finish();

 private:
  bool drawn_ = false;
};

}  // namespace sluice::cli
