#include "gui/views/run_curves_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "gui/widgets/step_plot.h"
#include "profiler/runs/run_colours.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kPointsOfRun = 2000;
constexpr std::array<const char*, 4> kFigureNames = {"Loss", "Validation loss", "Learning rate",
                                                     "Step time, s"};
constexpr const char* kSmoothingTip =
    "A smoothed value is the weighted mean of the values up to its step: one that is d steps back "
    "counts w^d, w being this value. Loss and step time are smoothed.";

// The value at a step, or at the last one before it; null: it has none yet.
const double* value_at(const OverlaidCurve& curve, double step) {
  const auto above = std::ranges::upper_bound(curve.steps, step);
  if (above == curve.steps.begin()) return nullptr;
  return &curve.values[static_cast<std::size_t>(above - curve.steps.begin()) - 1];
}

// As few points as can be told apart; smoothed values go with their own.
OverlaidCurve thinned_pair(OverlaidCurve curve) {
  StepCurve plain;
  plain.steps = curve.steps;
  plain.values = curve.raw.empty() ? curve.values : curve.raw;
  if (plain.steps.size() <= kPointsOfRun) return curve;
  plain = thinned(std::move(plain), kPointsOfRun);
  OverlaidCurve thin = {.name = curve.name, .colour = curve.colour, .steps = plain.steps};
  std::size_t at = 0;
  for (const double step : plain.steps) {
    while (curve.steps[at] < step) ++at;
    thin.values.push_back(curve.values[at]);
    if (!curve.raw.empty()) thin.raw.push_back(curve.raw[at]);
  }
  return thin;
}

}  // namespace

void RunCurvesPanel::draw(const std::vector<ChosenRun>& chosen) {
  if (chosen != chosen_) {
    chosen_ = chosen;
    std::vector<std::string> paths;
    for (const ChosenRun& run : chosen_) paths.push_back(run.path);
    read_.begin([paths] { return read_overlaid(paths); }, wake_);
  }
  draw_tools();
  if (chosen_.empty()) {
    draw_empty("Tick runs in the table: their curves are laid over each other here.");
    return;
  }
  draw_names();
  make_curves();
  if (read_.is_working()) draw_empty("The curves are being read\u2026");
  if (curves_.empty()) {
    if (!read_.is_working()) draw_empty("None of the runs that are shown has such a curve.");
    return;
  }
  const bool begins_at_zero = choice_.figure == Figure::rate || choice_.figure == Figure::time;
  double step = 0;
  if (draw_overlaid({.id = "##overlaid",
                     .size = {-1, std::max(px(90), ImGui::GetContentRegionAvail().y)},
                     .is_logarithmic = choice_.is_logarithmic,
                     .begins_at_zero = begins_at_zero},
                    curves_, &step)) {
    draw_tip(step);
  }
}

void RunCurvesPanel::draw_tools() {
  ImGui::SetNextItemWidth(px(126));
  auto figure = static_cast<int>(choice_.figure);
  if (ImGui::Combo("##figure", &figure, kFigureNames.data(), static_cast<int>(kFigureNames.size())))
    choice_.figure = static_cast<Figure>(figure);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(px(116));
  ImGui::SliderFloat("##smoothing", &choice_.smoothing, 0, 0.99F, "smoothing %.2f",
                     ImGuiSliderFlags_AlwaysClamp);
  tip_above(kSmoothingTip);
  ImGui::SameLine();
  ImGui::Checkbox("log", &choice_.is_logarithmic);
  ImGui::SetItemTooltip("a logarithmic axis of values");
}

// A click hides a run or shows it again.
void RunCurvesPanel::draw_names() {
  const float room = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const ChosenRun& run = chosen_[i];
    const float width = ImGui::CalcTextSize(run.name.c_str()).x + px(28);  // with its dot
    if (i > 0 && ImGui::GetItemRectMax().x + px(14) + width < room) ImGui::SameLine(0, px(14));
    const bool is_hidden = choice_.hidden.contains(run.path);
    const ImU32 colour = themed(runs::kRunColours[run.place]);
    draw_dot(is_hidden ? look().colours.line : colour);
    ImGui::SameLine(0, px(6));
    const std::string id = fmt::format("##name {}", i);
    if (draw_link(id.c_str(), run.name, is_hidden ? look().colours.dim : look().colours.text,
                  LinkWidth::text)) {
      if (choice_.hidden.erase(run.path) == 0) choice_.hidden.insert(run.path);
    }
  }
}

void RunCurvesPanel::make_curves() {
  choice_.theme = look().theme;
  const std::shared_ptr<const std::vector<OverlaidRun>> read = read_.result();
  if (read == made_of_ && choice_ == made_for_) return;
  made_of_ = read;
  made_for_ = choice_;
  curves_.clear();
  if (read == nullptr) return;
  for (const OverlaidRun& run : *read) {
    if (choice_.hidden.contains(run.curves.path)) continue;
    OverlaidCurve curve = curve_of(run.curves);
    if (!curve.steps.empty()) curves_.push_back(std::move(curve));
  }
}

OverlaidCurve RunCurvesPanel::curve_of(const runs::RunCurves& run) const {
  const auto chosen = std::ranges::find(chosen_, run.path, &ChosenRun::path);
  if (chosen == chosen_.end()) return {};
  OverlaidCurve curve = {.name = chosen->name, .colour = themed(runs::kRunColours[chosen->place])};
  std::vector<runs::CurvePoint> points;
  const auto add = [&](std::int64_t step, double value) {
    if (std::isfinite(value) && (value > 0 || !choice_.is_logarithmic))
      points.push_back({step, value});
  };
  if (choice_.figure == Figure::validation) {
    for (const rundb::ValidationRow& row : run.validations) add(row.step_id, row.loss);
  } else {
    for (const rundb::StepRow& step : run.steps) {
      add(step.id, choice_.figure == Figure::loss   ? step.loss
                   : choice_.figure == Figure::rate ? step.lr
                                                    : static_cast<double>(step.dur) / 1e9);
    }
  }
  const bool is_smoothed =
      choice_.smoothing > 0 && (choice_.figure == Figure::loss || choice_.figure == Figure::time);
  const std::vector<runs::CurvePoint> shown =
      is_smoothed ? runs::smoothed(points, static_cast<double>(choice_.smoothing)) : points;
  for (std::size_t i = 0; i < points.size(); ++i) {
    curve.steps.push_back(static_cast<double>(points[i].step + 1));
    curve.values.push_back(shown[i].value);
    if (is_smoothed) curve.raw.push_back(points[i].value);
  }
  return thinned_pair(std::move(curve));
}

void RunCurvesPanel::draw_tip(double step) const {
  if (!ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(fmt::format("step {:.0f}", step).c_str());
  for (const OverlaidCurve& curve : curves_) {
    const double* value = value_at(curve, step);
    draw_dot(curve.colour);
    ImGui::SameLine(0, px(6));
    ImGui::TextUnformatted(
        fmt::format("{}  {}", curve.name, value == nullptr ? "-" : fmt::format("{:.5g}", *value))
            .c_str());
  }
  ImGui::EndTooltip();
}

}  // namespace sluice::gui
