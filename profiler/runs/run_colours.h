#pragma once
// The colours of runs that are laid over each other, in order; the page and the window have the
// same.
//
// Thread contract: constants.

#include <array>

#include "base/colour.h"
#include "profiler/runs/run_curves.h"

namespace sluice::runs {

inline constexpr std::array<ThemedColour, kOverlaidMax> kRunColours = {{
    {.dark = 0x5aa9ff, .light = 0x2468b8},
    {.dark = 0xffa14a, .light = 0xb85a00},
    {.dark = 0x5fd39a, .light = 0x1b7f4b},
    {.dark = 0xff8fcb, .light = 0xb02a7c},
    {.dark = 0xb79cff, .light = 0x6a3fc0},
    {.dark = 0x4fd3d6, .light = 0x0f7c86},
    {.dark = 0xe6cf5a, .light = 0x7d6a00},
    {.dark = 0xff7a70, .light = 0xa5301f},
}};

}  // namespace sluice::runs
