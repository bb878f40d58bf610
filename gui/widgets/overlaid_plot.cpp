#include "gui/widgets/overlaid_plot.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "gui/widgets/look.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kFewPoints = 60;

struct Limits {
  double low = INFINITY;
  double high = -INFINITY;
  void take(double value, bool only_above_zero) {
    if (!std::isfinite(value) || (only_above_zero && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return !(low <= high); }
};

struct Area {
  Limits steps;
  Limits values;
};

Area area_of(const OverlaidPlot& plot, std::span<const OverlaidCurve> curves) {
  Area area;
  for (const OverlaidCurve& curve : curves) {
    for (const double step : curve.steps) area.steps.take(step, false);
    for (const std::vector<double>* values : {&curve.values, &curve.raw}) {
      for (const double value : *values) area.values.take(value, plot.is_logarithmic);
    }
  }
  return area;
}

// Some room above and below, and some where all values are the same.
Limits with_room(Limits values, const OverlaidPlot& plot) {
  if (plot.is_logarithmic) return {values.low / 1.05, values.high * 1.05};
  if (plot.begins_at_zero) return {0, values.high > 0 ? values.high * 1.06 : 1};
  const double room =
      std::max((values.high - values.low) * 0.06, std::abs(values.high) * 0.01 + 1e-9);
  return {values.low - room, values.high + room};
}

void draw_line(const OverlaidCurve& curve, const std::vector<double>& values, const char* id,
               float alpha) {
  ImPlotSpec line;
  line.LineColor = ImGui::ColorConvertU32ToFloat4(with_alpha(curve.colour, alpha));
  line.LineWeight = px(1.5F);
  if (curve.steps.size() <= kFewPoints) {
    line.Marker = ImPlotMarker_Circle;
    line.MarkerSize = px(2.2F);
    line.MarkerFillColor = line.MarkerLineColor = line.LineColor;
  }
  ImPlot::PlotLine(id, curve.steps.data(), values.data(), static_cast<int>(curve.steps.size()),
                   line);
}

}  // namespace

bool draw_overlaid(const OverlaidPlot& plot, std::span<const OverlaidCurve> curves,
                   double* hovered_step) {
  const Area area = area_of(plot, curves);
  if (area.steps.is_empty() || area.values.is_empty()) return false;
  const FontScope font(look().mono, Look::kSmallSize);
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMenus |
                            ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
  if (!ImPlot::BeginPlot(plot.id, plot.size, flags)) return false;
  const ImPlotAxisFlags axis = ImPlotAxisFlags_NoSideSwitch | ImPlotAxisFlags_NoHighlight;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, axis | ImPlotAxisFlags_NoGridLines);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, axis);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%g");
  if (plot.is_logarithmic) ImPlot::SetupAxisScale(ImAxis_Y1, ImPlotScale_Log10);
  const double room = std::max(0.5, (area.steps.high - area.steps.low) * 0.01);
  ImPlot::SetupAxisLimits(ImAxis_X1, std::max(0.05, area.steps.low - room), area.steps.high + room,
                          ImPlotCond_Always);
  const Limits values = with_room(area.values, plot);
  ImPlot::SetupAxisLimits(ImAxis_Y1, values.low, values.high, ImPlotCond_Always);
  ImPlot::SetupFinish();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    if (!curves[i].raw.empty()) draw_line(curves[i], curves[i].raw, "##raw", 0.3F);
    draw_line(curves[i], curves[i].values, "##curve", 1);
    ImGui::PopID();
  }
  const bool is_hovered = ImPlot::IsPlotHovered();
  if (is_hovered) *hovered_step = std::round(ImPlot::GetPlotMousePos().x);
  ImPlot::EndPlot();
  return is_hovered;
}

}  // namespace sluice::gui
