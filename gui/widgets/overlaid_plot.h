#pragma once
// Curves of several runs over each other, by step.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <span>
#include <string>
#include <vector>

namespace sluice::gui {

struct OverlaidCurve {
  std::string name = {};
  ImU32 colour = 0;
  std::vector<double> steps = {};  // from 1
  std::vector<double> values = {};
  std::vector<double> raw = {};  // of the same steps, drawn faintly; empty: the values are
};

struct OverlaidPlot {
  const char* id = "";
  ImVec2 size = {-1, -1};
  bool is_logarithmic = false;  // values that are not above 0 are left out
  bool begins_at_zero = false;
};

// True while the mouse is over it; `hovered_step` is then where, as people count.
bool draw_overlaid(const OverlaidPlot& plot, std::span<const OverlaidCurve> curves,
                   double* hovered_step);

}  // namespace sluice::gui
