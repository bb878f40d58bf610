#include "gui/views/steps_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "gui/data/span_lookup.h"
#include "gui/views/marks.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr std::size_t kPointsMax = 2000;

const rundb::StepRow* step_at(const std::vector<rundb::StepRow>& steps, double number) {
  const auto id = static_cast<std::int64_t>(number) - 1;
  const auto found = std::ranges::lower_bound(steps, id, {}, &rundb::StepRow::id);
  return found == steps.end() || found->id != id ? nullptr : &*found;
}

template <typename ValueOf>
StepCurve curve_of(const std::vector<rundb::StepRow>& steps, ValueOf&& value_of) {
  StepCurve curve;
  for (const rundb::StepRow& step : steps) {
    const double value = value_of(step);
    if (!std::isfinite(value)) continue;
    curve.steps.push_back(static_cast<double>(step.id + 1));
    curve.values.push_back(value);
    if (!step.skipped) continue;
    curve.skipped_steps.push_back(curve.steps.back());
    curve.skipped_values.push_back(value);
  }
  return thinned(std::move(curve), kPointsMax);
}

void add_validations(const std::vector<rundb::ValidationRow>& rows, StepCurve& curve) {
  for (const rundb::ValidationRow& row : rows) {
    if (!std::isfinite(row.loss)) continue;
    curve.second_steps.push_back(static_cast<double>(row.step_id + 1));
    curve.second_values.push_back(row.loss);
  }
}

const rundb::ValidationRow* validation_of(const std::vector<rundb::ValidationRow>& rows,
                                          std::int64_t step_id) {
  const auto found = std::ranges::lower_bound(rows, step_id, {}, &rundb::ValidationRow::step_id);
  return found == rows.end() || found->step_id != step_id ? nullptr : &*found;
}

struct Unit {
  const char* name;
  double ns;
};
Unit unit_of(const std::vector<rundb::StepRow>& steps) {
  TimeNs longest = 0;
  for (const rundb::StepRow& step : steps) longest = std::max(longest, step.dur);
  if (longest >= 1'000'000'000) return {"s", 1e9};
  if (longest >= 1'000'000) return {"ms", 1e6};
  return {"us", 1e3};
}

}  // namespace

StepsView::StepsView(const RunPieces& pieces, TimelineState& timeline, Foreground& foreground)
    : View(words::kSteps), pieces_(pieces), timeline_(timeline), foreground_(foreground) {}
const char* StepsView::help() const { return "Time, loss and learning rate of every step"; }

void StepsView::draw_content() {
  const std::vector<rundb::StepRow>& steps = pieces_.steps();
  if (steps.empty()) {
    draw_title("Steps");
    draw_empty("No step has ended.");
    return;
  }
  make_curves();
  const std::vector<StepMark> marks = marks_of(pieces_.facts());
  const StepAxis axis{static_cast<double>(steps.front().id + 1),
                      static_cast<double>(steps.back().id + 1)};
  const bool has_rates = !rates_.steps.empty();
  const float parts = has_rates ? 2.6F : 2;  // the rate's curve is flatter
  const float room = ImGui::GetContentRegionAvail().y;
  const float title = ImGui::GetTextLineHeightWithSpacing() + px(4);
  const float height = std::max(px(70), (room - (has_rates ? title : 0)) / parts - title - px(7));
  double number = 0;
  draw_title("Step time", fmt::format("{} a step", unit_of(steps).name));
  if (draw_step_curve({.id = "##time", .size = {-1, height}, .axis = axis, .begins_at_zero = true},
                      times_, marks, &number)) {
    draw_step_tip(number);
  }
  draw_losses({.id = "##loss", .size = {-1, height}, .axis = axis}, marks);
  if (!has_rates) return;
  draw_title("Learning rate");
  if (draw_step_curve({.id = "##rate",
                       .size = {-1, std::max(px(60), height * 0.6F)},
                       .axis = axis,
                       .begins_at_zero = true},
                      rates_, marks, &number)) {
    draw_step_tip(number);
  }
}

void StepsView::make_curves() {
  const std::vector<rundb::StepRow>& steps = pieces_.steps();
  const std::vector<rundb::ValidationRow>& validations = pieces_.validations();
  if (steps.data() == shown_of_ && steps.size() == shown_count_ &&
      validations.data() == shown_validations_) {
    return;
  }
  shown_of_ = steps.data();
  shown_count_ = steps.size();
  shown_validations_ = validations.data();
  const double ns = unit_of(steps).ns;
  times_ =
      curve_of(steps, [ns](const rundb::StepRow& s) { return static_cast<double>(s.dur) / ns; });
  losses_ = curve_of(steps, [](const rundb::StepRow& s) { return s.loss; });
  add_validations(validations, losses_);
  rates_ = curve_of(steps, [](const rundb::StepRow& s) { return s.lr; });
}

void StepsView::draw_losses(const CurvePlot& plot, const std::vector<StepMark>& marks) {
  if (losses_.steps.empty()) {
    draw_title("Loss");
    draw_empty(pieces_.facts().is_simulated()
                   ? "A simulated step moves no data and computes nothing, so it has no loss."
                   : "No step has a loss that is a number.");
    return;
  }
  const std::vector<rundb::ValidationRow>& validations = pieces_.validations();
  const bool classifies = !validations.empty() && std::isfinite(validations.back().accuracy);
  std::string unit = pieces_.facts().info.is_of_session() ? "the program's"
                     : classifies                         ? "nats a record"
                                                          : "nats a token";
  if (!losses_.second_steps.empty()) unit += "; green: held-out text";
  draw_title("Loss", unit);
  double number = 0;
  if (draw_step_curve(plot, losses_, marks, &number)) draw_step_tip(number);
}

void StepsView::draw_step_tip(double number) {
  const rundb::StepRow* step = step_at(pieces_.steps(), number);
  if (step == nullptr) return;
  if (ImGui::BeginTooltip()) {
    ImGui::Text("step %s", step_text(step->id).c_str());
    if (ImGui::BeginTable("##tip", 2)) {
      draw_pair("time", time_text(step->dur));
      draw_pair("loss", figure_text(step->loss, 4));
      if (const auto* row = validation_of(pieces_.validations(), step->id); row != nullptr) {
        draw_pair("validation loss", figure_text(row->loss, 4));
        if (std::isfinite(row->accuracy))
          draw_pair("accuracy", fmt::format("{:.1f} %", 100 * row->accuracy));
      }
      if (std::isfinite(step->lr)) draw_pair("learning rate", fmt::format("{:.4g}", step->lr));
      draw_pair("gradient norm", figure_text(step->grad_norm, 4));
      ImGui::EndTable();
    }
    if (step->skipped) draw_coloured(look().colours.amber, "skipped: gradients overflowed", false);
    draw_note("click: show on the timeline, and why it took as long");
    ImGui::EndTooltip();
  }
  if (ImGui::IsMouseReleased(ImGuiMouseButton_Left)) {
    timeline_.show_step(*step);
    foreground_.bring("Details");
    foreground_.bring("Timeline");
  }
}

}  // namespace sluice::gui
