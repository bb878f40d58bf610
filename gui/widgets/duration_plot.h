#pragma once
// How long operations took, as bars on a logarithmic axis, with one of them marked.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace sluice::gui {

struct DurationBar {
  TimeNs from_ns = 0;  // the shortest that counts; up to the next bar's
  std::int64_t count = 0;
};

// As wide as there is room, some lines high. `bars` are in order and without gaps; `marked_ns`: a
// line stands there; -1: none. The pointer's bar says its count and lengths.
void draw_duration_bars(const char* id, const std::vector<DurationBar>& bars, TimeNs marked_ns);

}  // namespace sluice::gui
