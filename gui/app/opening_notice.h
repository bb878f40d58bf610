#pragma once
// How far the opening of a run is that has several records, and why it cannot be opened.
//
// Thread contract: the frame thread, between ImGui's NewFrame and Render.

#include <cstdint>

#include "gui/data/opening.h"

namespace sluice::gui {

enum class OpeningChoice : std::uint8_t { none, close, open_another };

// `has_picture`: of the same ranks, read before, which stays.
OpeningChoice draw_opening_notice(const Opening& opening, bool has_picture);

}  // namespace sluice::gui
