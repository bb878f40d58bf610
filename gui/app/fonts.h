#pragma once
// The fonts, which are part of the program: Roboto for text, Inconsolata for figures.
//
// Thread contract: the main thread, after ImGui's context was made.

namespace sluice::gui {

void load_fonts();

}  // namespace sluice::gui
