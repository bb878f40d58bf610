#pragma once
// A measured stretch of the timeline, and one that was measured before and is compared with it.
//
// Thread contract: the frame thread.

#include <optional>

#include "gui/views/time_view.h"

namespace sluice::gui {

class Measure {
 public:
  bool is_on() const { return is_on_; }  // dragging measures, also without Shift
  void toggle() { is_on_ = !is_on_; }
  void end() { is_on_ = false; }

  const std::optional<TimeRange>& range() const { return range_; }
  void set(TimeRange range) { range_ = range; }
  void forget() { range_.reset(); }

  const std::optional<TimeRange>& pinned() const { return pinned_; }
  void pin() { pinned_ = range_; }

 private:
  bool is_on_ = false;
  std::optional<TimeRange> range_;
  std::optional<TimeRange> pinned_;
};

}  // namespace sluice::gui
