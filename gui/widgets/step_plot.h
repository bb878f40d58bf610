#pragma once
// Curves and stacked bars over the steps of a run, with changes of knobs marked in amber.
//
// Thread contract: the frame thread, inside an ImGui window.

#include <imgui.h>

#include <string>
#include <vector>

namespace sluice::gui {

struct StepMark {
  double step = 0;  // as people count: from 1
  std::string text;
};

struct StepCurve {
  std::vector<double> steps;  // from 1
  std::vector<double> values;
  std::vector<double> skipped_steps;  // overflowed: marked
  std::vector<double> skipped_values;
  std::vector<double> second_steps;  // another curve over the first, of points that stand apart
  std::vector<double> second_values;
};

struct StepAxis {
  double first = 1;
  double last = 1;
};

// At most `count_max` points: the lowest and the highest of each stretch, so no peak is lost.
StepCurve thinned(StepCurve curve, std::size_t count_max);

struct CurvePlot {
  const char* id = "";
  ImVec2 size = {-1, -1};
  StepAxis axis;
  bool begins_at_zero = false;
};
// True while the mouse is over it; `hovered_step` is then the nearest one that has a value.
bool draw_step_curve(const CurvePlot& plot, const StepCurve& curve,
                     const std::vector<StepMark>& marks, double* hovered_step);

struct StackedBars {
  std::vector<double> steps;                // middle of each bar
  std::vector<std::vector<double>> values;  // of each series
  std::vector<ImU32> colours;               // of each series
  double bar_width = 1;
};
bool draw_step_bars(const CurvePlot& plot, const StackedBars& bars,
                    const std::vector<StepMark>& marks, double* hovered_step);

}  // namespace sluice::gui
