#include "gui/widgets/step_plot.h"

#include <implot.h>

#include <algorithm>
#include <cmath>

#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/mark_labels.h"

namespace sluice::gui {
namespace {

constexpr double kFewSteps = 8;

ImVec4 vec(ImU32 colour) { return ImGui::ColorConvertU32ToFloat4(colour); }

struct Range {
  double low = 0;
  double high = 1;
};

Range range_of(const std::vector<double>& values, bool begins_at_zero,
               const std::vector<double>& others = {}) {
  Range range{.low = INFINITY, .high = -INFINITY};
  for (const std::vector<double>* some : {&values, &others}) {
    for (const double value : *some) {
      if (!std::isfinite(value)) continue;
      range.low = std::min(range.low, value);
      range.high = std::max(range.high, value);
    }
  }
  if (!(range.low <= range.high)) return {};
  if (begins_at_zero) return {0, range.high > 0 ? range.high * 1.06 : 1};
  const double room = (range.high - range.low) * 0.06;
  const double least = std::abs(range.high) * 0.01 + 1e-9;
  return {range.low - std::max(room, least), range.high + std::max(room, least)};
}

double axis_room(const StepAxis& axis) { return std::max(0.5, (axis.last - axis.first) * 0.01); }

float mark_row_height() { return ImGui::GetFontSize() + px(4); }
std::size_t mark_row_max(float height) {
  return static_cast<std::size_t>(std::clamp(height * 0.4F / mark_row_height(), 1.0F, 3.0F));
}

// Texts of marks in a few rows between two sides of the plot.
template <typename XOf>
std::vector<MarkLabel> place_texts(const std::vector<StepMark>& marks, float left, float right,
                                   std::size_t row_max, XOf&& x_of) {
  std::vector<PlacedMark> placed;
  for (const StepMark& mark : marks) {
    if (!mark.text.empty()) placed.push_back({x_of(mark.step) + px(4), mark.text});
  }
  const auto width_of = [](const std::string& text) { return ImGui::CalcTextSize(text.c_str()).x; };
  return place_mark_labels(
      placed, {.left = left, .right = right - px(4), .gap = px(8), .row_max = row_max}, width_of);
}

// Where the plot will lie is not known yet; labels of the axis below take about the rest.
float height_of_values(const CurvePlot& plot) {
  const float whole = plot.size.y > 0 ? plot.size.y : ImGui::GetContentRegionAvail().y;
  return std::max(px(40), whole - px(26));
}

// Higher, so that the texts of marks have their rows above the values. Where the plot will lie is
// not known yet; labels of the axis beside it take about this width.
Range below_texts(const CurvePlot& plot, const std::vector<StepMark>& marks, Range range) {
  const ImVec2 free = ImGui::GetContentRegionAvail();
  const float height = height_of_values(plot);
  const float left = px(40);
  const double steps = plot.axis.last - plot.axis.first + 2 * axis_room(plot.axis);
  const auto x_of = [&](double step) {
    const double share = (step - plot.axis.first + axis_room(plot.axis)) / steps;
    return left + static_cast<float>(share) * (free.x - left);
  };
  std::size_t rows = 0;
  for (const MarkLabel& text : place_texts(marks, left, free.x, mark_row_max(height), x_of)) {
    rows = std::max(rows, text.row + 1);
  }
  const double share = std::min(0.5F, static_cast<float>(rows) * mark_row_height() / height);
  range.high += (range.high - range.low) * share / (1 - share);
  return range;
}

// As many numbers beside the axis as have room above one another.
void setup_marks_of_values(const Range& range, float height) {
  const double distance = tick_distance((range.high - range.low) * px(20) / height);
  std::vector<double> marks;
  for (double n = std::ceil(range.low / distance); n * distance <= range.high; ++n)
    marks.push_back(n * distance + 0.0);  // ceil() of a little below 0 is -0
  if (!marks.empty())
    ImPlot::SetupAxisTicks(ImAxis_Y1, marks.data(), static_cast<int>(marks.size()));
}

bool begin_plot(const CurvePlot& plot, const Range& range) {
  const ImPlotFlags flags = ImPlotFlags_NoTitle | ImPlotFlags_NoLegend | ImPlotFlags_NoMenus |
                            ImPlotFlags_NoBoxSelect | ImPlotFlags_NoMouseText;
  if (!ImPlot::BeginPlot(plot.id, plot.size, flags)) return false;
  const ImPlotAxisFlags axis = ImPlotAxisFlags_NoSideSwitch | ImPlotAxisFlags_NoHighlight;
  ImPlot::SetupAxis(ImAxis_X1, nullptr, axis | ImPlotAxisFlags_NoGridLines);
  ImPlot::SetupAxis(ImAxis_Y1, nullptr, axis | ImPlotAxisFlags_NoTickMarks);
  ImPlot::SetupAxisFormat(ImAxis_X1, "%.0f");
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%g");
  // Each of a few steps has its number, and none has it twice.
  const double first = std::ceil(plot.axis.first);
  const double last = std::floor(plot.axis.last);
  if (last - first < kFewSteps) {
    ImPlot::SetupAxisTicks(ImAxis_X1, first, std::max(first, last),
                           static_cast<int>(std::max(0.0, last - first)) + 1);
  }
  const double room = axis_room(plot.axis);
  // Steps are counted from 1: no number 0 stands beside the first.
  ImPlot::SetupAxisLimits(ImAxis_X1, std::max(0.05, plot.axis.first - room), plot.axis.last + room,
                          ImPlotCond_Always);
  setup_marks_of_values(range, height_of_values(plot));
  ImPlot::SetupAxisLimits(ImAxis_Y1, range.low, range.high, ImPlotCond_Always);
  ImPlot::SetupFinish();
  return true;
}

void draw_marks(const std::vector<StepMark>& marks) {
  const ImU32 amber = look().colours.amber;
  const ImVec2 at = ImPlot::GetPlotPos();
  const ImVec2 size = ImPlot::GetPlotSize();
  ImDrawList* list = ImPlot::GetPlotDrawList();
  const auto x_of = [](double step) { return ImPlot::PlotToPixels(step, 0).x; };
  ImPlot::PushPlotClipRect();
  for (const StepMark& mark : marks) {
    const float x = x_of(mark.step);
    for (float y = at.y; y < at.y + size.y; y += px(7))
      list->AddLine({x, y}, {x, std::min(y + px(4), at.y + size.y)}, amber, px(1));
  }
  const float right = at.x + size.x;
  for (const MarkLabel& text : place_texts(marks, at.x, right, mark_row_max(size.y), x_of)) {
    const float y = at.y + px(1) + static_cast<float>(text.row) * mark_row_height();
    list->AddRectFilled({text.begin - px(2), y},
                        {text.begin + text.width + px(2), y + mark_row_height() - px(1)},
                        look().colours.panel, px(2));
    list->AddText({text.begin, y + px(1)}, amber, text.text.c_str());
  }
  ImPlot::PopPlotClipRect();
}

double nearest(const std::vector<double>& steps, double wanted) {
  const auto above = std::ranges::lower_bound(steps, wanted);
  if (above == steps.begin()) return steps.empty() ? wanted : steps.front();
  if (above == steps.end()) return steps.back();
  return *above - wanted < wanted - *std::prev(above) ? *above : *std::prev(above);
}

bool hover(const std::vector<double>& steps, double* hovered_step) {
  if (!ImPlot::IsPlotHovered() || steps.empty()) return false;
  *hovered_step = nearest(steps, ImPlot::GetPlotMousePos().x);
  const float x = ImPlot::PlotToPixels(*hovered_step, 0).x;
  const ImVec2 at = ImPlot::GetPlotPos();
  ImPlot::GetPlotDrawList()->AddLine({x, at.y}, {x, at.y + ImPlot::GetPlotSize().y},
                                     look().colours.dim, px(1));
  return true;
}

}  // namespace

StepCurve thinned(StepCurve curve, std::size_t count_max) {
  const std::size_t count = curve.steps.size();
  if (count <= count_max || count_max < 4) return curve;
  const std::size_t buckets = count_max / 2;
  StepCurve thin;
  thin.skipped_steps = std::move(curve.skipped_steps);
  thin.skipped_values = std::move(curve.skipped_values);
  thin.second_steps = std::move(curve.second_steps);
  thin.second_values = std::move(curve.second_values);
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    const std::size_t begin = count * bucket / buckets;
    const std::size_t end = count * (bucket + 1) / buckets;
    std::size_t low = begin;
    std::size_t high = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (!(curve.values[i] >= curve.values[low])) low = i;
      if (curve.values[i] > curve.values[high]) high = i;
    }
    for (const std::size_t i : {std::min(low, high), std::max(low, high)}) {
      thin.steps.push_back(curve.steps[i]);
      thin.values.push_back(curve.values[i]);
      if (low == high) break;
    }
  }
  return thin;
}

bool draw_step_curve(const CurvePlot& plot, const StepCurve& curve,
                     const std::vector<StepMark>& marks, double* hovered_step) {
  const FontScope font(look().mono, Look::kSmallSize);
  const Range range = range_of(curve.values, plot.begins_at_zero, curve.second_values);
  if (!begin_plot(plot, below_texts(plot, marks, range))) return false;
  ImPlotSpec line;
  line.LineColor = vec(look().colours.accent);
  line.LineWeight = px(1.5F);
  if (curve.steps.size() <= 60) {
    line.Marker = ImPlotMarker_Circle;
    line.MarkerSize = px(2.2F);
    line.MarkerFillColor = line.MarkerLineColor = line.LineColor;
  }
  ImPlot::PlotLine("##curve", curve.steps.data(), curve.values.data(),
                   static_cast<int>(curve.steps.size()), line);
  if (!curve.second_steps.empty()) {
    line.LineColor = vec(look().colours.green);
    line.Marker = ImPlotMarker_Circle;
    line.MarkerSize = px(2.8F);
    line.MarkerFillColor = line.MarkerLineColor = line.LineColor;
    ImPlot::PlotLine("##second", curve.second_steps.data(), curve.second_values.data(),
                     static_cast<int>(curve.second_steps.size()), line);
  }
  for (std::size_t i = 0; i < curve.skipped_steps.size(); ++i) {
    const ImVec2 at = ImPlot::PlotToPixels(curve.skipped_steps[i], curve.skipped_values[i]);
    ImDrawList* list = ImPlot::GetPlotDrawList();
    const float r = px(4);
    list->AddLine({at.x - r, at.y - r}, {at.x + r, at.y + r}, look().colours.amber, px(1.5F));
    list->AddLine({at.x - r, at.y + r}, {at.x + r, at.y - r}, look().colours.amber, px(1.5F));
  }
  draw_marks(marks);
  const bool is_hovered = hover(curve.steps, hovered_step);
  ImPlot::EndPlot();
  return is_hovered;
}

bool draw_step_bars(const CurvePlot& plot, const StackedBars& bars,
                    const std::vector<StepMark>& marks, double* hovered_step) {
  const FontScope font(look().mono, Look::kSmallSize);
  std::vector<double> sums(bars.steps.size(), 0);
  for (const std::vector<double>& values : bars.values) {
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
  }
  if (!begin_plot(plot, below_texts(plot, marks, range_of(sums, true)))) return false;
  ImDrawList* list = ImPlot::GetPlotDrawList();
  ImPlot::PushPlotClipRect();
  for (std::size_t i = 0; i < bars.steps.size(); ++i) {
    const double half = bars.bar_width / 2;
    const float left = ImPlot::PlotToPixels(bars.steps[i] - half, 0).x;
    const float right = ImPlot::PlotToPixels(bars.steps[i] + half, 0).x;
    const float gap = right - left > px(4) ? px(1) : 0;
    double below = 0;
    for (std::size_t series = 0; series < bars.values.size(); ++series) {
      const double above = below + bars.values[series][i];
      const float top = ImPlot::PlotToPixels(0, above).y;
      const float bottom = ImPlot::PlotToPixels(0, below).y;
      list->AddRectFilled({left, top}, {std::max(left + 1, right - gap), bottom},
                          bars.colours[series]);
      below = above;
    }
  }
  ImPlot::PopPlotClipRect();
  draw_marks(marks);
  const bool is_hovered = hover(bars.steps, hovered_step);
  ImPlot::EndPlot();
  return is_hovered;
}

}  // namespace sluice::gui
