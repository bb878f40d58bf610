#pragma once
// The time that the screen shows, and how much of it a column is.
//
// Thread contract: plain data.

#include "base/units.h"

namespace sluice::gui {

struct TimelineRequest {
  TimeNs begin = 0;
  TimeNs end = 0;
  TimeNs column_ns = 1;
  bool operator==(const TimelineRequest&) const = default;
};

}  // namespace sluice::gui
