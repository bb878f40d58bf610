#pragma once
// Curves of the chosen runs over each other: one figure at a time, smoothed as somebody likes.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gui/data/background.h"
#include "gui/data/run_table_feed.h"
#include "gui/widgets/look.h"
#include "gui/widgets/overlaid_plot.h"

namespace sluice::gui {

// A chosen run, and the place of its colour among runs::kRunColours.
struct ChosenRun {
  std::string path;
  std::string name;
  std::size_t place = 0;
  bool operator==(const ChosenRun&) const = default;
};

class RunCurvesPanel {
 public:
  explicit RunCurvesPanel(const std::function<void()>& wake) : wake_(wake) {}
  void draw(const std::vector<ChosenRun>& chosen);

 private:
  enum class Figure : std::uint8_t { loss, validation, rate, time };
  struct Choice {
    Figure figure = Figure::loss;
    float smoothing = 0;
    bool is_logarithmic = false;
    std::set<std::string> hidden;  // paths
    Theme theme = Theme::dark;     // of the colours
    bool operator==(const Choice&) const = default;
  };
  void draw_tools();
  void draw_names();
  void make_curves();
  OverlaidCurve curve_of(const runs::RunCurves& run) const;
  void draw_tip(double step) const;

  const std::function<void()>& wake_;
  std::vector<ChosenRun> chosen_;
  Background<std::vector<OverlaidRun>> read_;
  Choice choice_;
  // What the curves were made of.
  Choice made_for_;
  std::shared_ptr<const std::vector<OverlaidRun>> made_of_;
  std::vector<OverlaidCurve> curves_;
};

}  // namespace sluice::gui
