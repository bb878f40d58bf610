#include "gui/views/knobs_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/words.h"
#include "gui/data/like_run.h"
#include "gui/views/marks.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/knob_field.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

constexpr float kListShare = 0.5F;        // of the view's height; the effects have the rest
constexpr float kListShareAlone = 0.72F;  // where nothing was changed, and the run is over

std::string tip_of(const control::Knob& knob) {
  std::string tip = knob.help;
  if (!knob.values.empty()) {
    // Sizes in bytes have their unit with each figure.
    const std::string unit = knob.unit.empty() || knob.unit == "bytes" ? "" : " " + knob.unit;
    tip += fmt::format("{}{}{}", tip.empty() ? "" : "\n", knob.values, unit);
  }
  if (!knob.default_value.empty()) tip += fmt::format("\ndefault: {}", knob.default_value);
  return tip;
}

KnobField field_of(const control::Knob& knob, const RunFacts& facts) {
  KnobField field;
  field.key = knob.key;
  field.kind = knob_kind(knob.type);
  field.min = knob.min;
  field.max = knob.max;
  field.words = knob.words;
  field.unit = knob.type == "bytes" ? "" : knob.unit;
  field.tip = tip_of(knob);
  field.in_force = knob.value;
  for (const rundb::DeviceRow& device : facts.info.devices)
    field.share_names.push_back(device.name);
  return field;
}

std::string value_text(const FigureEffect& figure, double value) {
  if (figure.unit == "s") return time_text(static_cast<TimeNs>(value * 1e9));
  if (figure.unit == "B") return bytes_text(value);
  return figure_text(value, 3);
}

const char* name_of(const FigureEffect& figure) {
  if (figure.key == "step_time") return "step";
  return figure.key == "shared_link" ? "host link" : figure.key.c_str();
}

ImU32 figure_colour(const FigureEffect& figure) {
  const Colours& colours = look().colours;
  if (!figure.is_more_than_noise()) return colours.dim;
  if (figure.unit.empty()) return colours.text;
  return figure.difference() < 0 ? colours.green : colours.amber;
}

void draw_knob_heads() {
  const FontScope font(look().text, Look::kSmallSize);
  ImGui::TableNextRow();
  for (const char* head : {"", "before", "after", "change"}) {
    ImGui::TableNextColumn();
    draw_figure(head, look().colours.dim);
  }
}

void draw_figures(const ChangeEffect& effect) {
  if (!ImGui::BeginTable("##figures", 4)) return;
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch, 0.8F);
  ImGui::TableSetupColumn("before", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("after", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("change", ImGuiTableColumnFlags_WidthStretch, 1.25F);
  draw_knob_heads();
  for (const FigureEffect& figure : effect.figures) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_coloured(look().colours.dim, name_of(figure), false);
    ImGui::TableNextColumn();
    draw_figure(value_text(figure, figure.before));
    ImGui::TableNextColumn();
    draw_figure(value_text(figure, figure.after));
    ImGui::TableNextColumn();
    const double noise = figure.before == 0 ? 0 : figure.noise / figure.before;
    draw_figure(fmt::format("{:+.1f}\u2009%", figure.change() * 100), figure_colour(figure));
    ImGui::SetItemTooltip("%s of %s; noise of the difference: %s (%.1f %%)%s",
                          value_text(figure, figure.difference()).c_str(), name_of(figure),
                          value_text(figure, figure.noise).c_str(), noise * 100,
                          figure.is_more_than_noise() ? "" : ": it may be chance");
  }
  ImGui::EndTable();
}

std::string within_error_note(double fit_error) {
  return fmt::format("within the simulation's own error of {:.1f} %: nobody knows what it does",
                     std::abs(fit_error) * 100);
}

// The noise of the step time, which a person turns a knob for.
std::string noise_note(const ChangeEffect& effect, bool is_live) {
  const FigureEffect* time = effect.figure("step_time");
  if (time == nullptr || time->before <= 0) return {};
  return fmt::format("medians of {} and {} steps; noise \u00b1{:.1f} %{}", effect.before_count,
                     effect.after_count, time->noise / time->before * 100,
                     effect.is_settled || !is_live ? "" : "; more steps will count");
}

}  // namespace

KnobsView::KnobsView(const RunPieces& pieces, RunControl& control,
                     const std::function<void()>& wake)
    : View(words::kKnobs), pieces_(pieces), control_(control), wake_(wake) {}
const char* KnobsView::help() const { return "Turn the run, and see what the last changes did"; }

void KnobsView::draw_content() {
  const bool can_choose = control_.choice.can_choose();
  draw_title("Knobs", control_.choice.can_turn()         ? "take effect at the next step"
                      : control_.choice.is_for_new_run() ? "for a new run like this one"
                                                         : "");
  if (!can_choose) draw_empty(control_.choice.why_not(*pieces_.run));
  const bool has_effects = !control_.effects().empty() || control_.choice.can_turn();
  const bool has_rest = has_effects || can_choose;
  const float share = has_effects ? kListShare : kListShareAlone;
  const float height = has_rest ? ImGui::GetContentRegionAvail().y * share : 0;
  if (ImGui::BeginChild("##knobs", {0, height})) {
    if (can_choose) {
      draw_knobs();
    } else {
      draw_values();
    }
  }
  ImGui::EndChild();
  if (can_choose) draw_actions();
  if (!has_effects) return;
  ImGui::Separator();
  if (ImGui::BeginChild("##effects")) draw_effects();
  ImGui::EndChild();
}

void KnobsView::draw_knobs() {
  const std::shared_ptr<const Advice> recorded =
      control_.consultation.advisor()->advice(Question::knobs);
  if (recorded != nullptr && !recorded->problem.empty())
    draw_coloured(look().colours.amber, "Without the knobs' words and help: " + recorded->problem);
  // Choosing changes nothing here: the list is the run's.
  for (const control::Knob& knob : control_.choice.knobs(pieces_.facts())) {
    std::string chosen = control_.choice.shown_value(knob);
    if (draw_knob_field(field_of(knob, pieces_.facts()), chosen))
      control_.choice.choose(knob, chosen);
  }
}

void KnobsView::draw_values() const {
  const std::vector<control::Knob>& knobs = control_.choice.knobs(pieces_.facts());
  if (knobs.empty()) draw_empty("The record names no knobs.");
  if (!ImGui::BeginTable("##values", 2, ImGuiTableFlags_RowBg)) return;
  for (const control::Knob& knob : knobs) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(knob.key.c_str());
    const std::string tip = tip_of(knob);
    if (!tip.empty()) ImGui::SetItemTooltip("%s", tip.c_str());
    ImGui::TableNextColumn();
    const bool is_own = knob.value != knob.default_value;
    draw_figure(knob.value.empty() ? "-" : knob.value, is_own ? 0 : look().colours.dim);
  }
  ImGui::EndTable();
}

// Apply, discard, predict
// ---------------------------------------------------------------------------------

void KnobsView::draw_actions() {
  const float gap = ImGui::GetStyle().ItemSpacing.x;
  const float room = ImGui::GetContentRegionAvail().x;
  // Two rows where four names would not fit in one.
  const bool is_narrow = room < px(260);
  if (control_.choice.is_for_new_run()) {
    draw_new_run();
    draw_choice_buttons((room - 2 * gap) / 3, false);
  } else {
    const float columns = is_narrow ? 2 : 4;
    const float width = (room - (columns - 1) * gap) / columns;
    draw_apply(width);
    ImGui::SameLine();
    draw_choice_buttons(width, is_narrow);
    draw_take_back();
    draw_answer_of_run();
  }
  draw_prediction();
  draw_proposal();
  if (control_.choice.is_for_new_run()) draw_command();
}

void KnobsView::draw_apply(float width) {
  const std::size_t count = control_.choice.pending().size();
  ImGui::BeginDisabled(count == 0 || control_.choice.pending().is_under_way());
  ImGui::PushStyleColor(ImGuiCol_Button,
                        with_alpha(look().colours.accent, count == 0 ? 0.15F : 0.4F));
  // The same name however many there are: keys and tests find it.
  const std::string label = count == 0 ? "Apply###apply" : fmt::format("Apply {}###apply", count);
  if (ImGui::Button(label.c_str(), {width, 0})) control_.apply();
  ImGui::PopStyleColor();
  tip_above("Ctrl+Enter: all pending changes, together or not at all");
  ImGui::EndDisabled();
}

void KnobsView::draw_choice_buttons(float width, bool is_narrow) {
  ImGui::BeginDisabled(control_.choice.pending().empty());
  if (ImGui::Button(words::kDiscard, {width, 0})) control_.choice.discard();
  if (!is_narrow) ImGui::SameLine();
  if (ImGui::Button(words::kWhatIf, {width, 0})) control_.ask_what_if();
  tip_above("predicts the step time with the pending changes");
  ImGui::EndDisabled();
  ImGui::SameLine();
  if (ImGui::Button(words::kTune, {width, 0})) control_.ask_for_proposal();
  tip_above("searches for the settings with the shortest step, and chooses them");
}

void KnobsView::draw_take_back() {
  ImGui::Checkbox("revert if a step takes", &control_.take_back_rule.is_on);
  ImGui::SameLine(0, px(5));
  ImGui::SetNextItemWidth(px(46));
  ImGui::DragInt("##percent", &control_.take_back_rule.percent, 0.1F, 0, 1000, "%d %%",
                 ImGuiSliderFlags_AlwaysClamp);
  ImGui::SameLine(0, px(5));
  ImGui::TextUnformatted("longer");
}

// The run's answer to the last request.
void KnobsView::draw_answer_of_run() const {
  const Colours& colours = look().colours;
  if (!control_.choice.pending().refusal().empty())
    draw_coloured(colours.red, control_.choice.pending().refusal());
  if (control_.choice.pending().is_under_way())
    draw_coloured(colours.amber, "The run takes it over at its next step\u2026");
  if (control_.choice.state()->asked.empty()) return;
  const AskedSet& last = control_.choice.state()->asked.back();
  if (last.outcome == SetOutcome::reverted)
    draw_coloured(colours.amber, "Reverted by the run: " + last.message);
  if (last.outcome == SetOutcome::kept) draw_coloured(colours.green, "Kept: " + last.message);
  if (last.outcome == SetOutcome::superseded)
    draw_coloured(colours.amber, "Superseded: " + last.message);
  if (last.outcome == SetOutcome::refused && last.message != control_.choice.pending().refusal())
    draw_coloured(colours.red, last.message);
}

// A new run
// ---------------------------------------------------------------------------------

void KnobsView::draw_new_run() {
  const std::size_t count = control_.choice.pending().size();
  ImGui::PushStyleColor(ImGuiCol_Button, with_alpha(look().colours.accent, 0.4F));
  const std::string label =
      count == 0 ? "New run with these settings###new run"
                 : fmt::format("New run with {} change{}###new run", count, count == 1 ? "" : "s");
  if (ImGui::Button(label.c_str(), {-1, 0})) {
    control_.ask_for_new_run();
    named_of_ = nullptr;  // the next one writes elsewhere
  }
  ImGui::PopStyleColor();
  tip_above("Ctrl+Shift+Enter: begins it beside this one, and opens it");
  if (!control_.new_run_problem().empty())
    draw_coloured(look().colours.red, control_.new_run_problem());
}

void KnobsView::draw_command() {
  const LikeRun like = pieces_.like_run(control_.choice.pending().settings());
  if (named_of_ != pieces_.feed.get()) {
    named_of_ = pieces_.feed.get();
    named_.begin([like] { return Named{pasted_sluice(), free_output(like)}; }, wake_);
  }
  for (const std::string& setting : control_.choice.chosen_without_knob())
    draw_coloured(look().colours.amber, setting);
  const std::shared_ptr<const Named> named = named_.result();
  if (named == nullptr) return;
  const std::string command = like_command(like, named->output, named->program);
  {
    const FontScope font(look().mono, Look::kSmallSize);  // in which two hyphens stay two
    draw_coloured(look().colours.dim, command);
  }
  ImGui::SetItemTooltip("the same as a command, to be typed in a terminal");
  if (ImGui::Button("Copy the command")) ImGui::SetClipboardText(command.c_str());
}

// Predictions and proposals
// ---------------------------------------------------------------------------------

void KnobsView::draw_prediction() {
  if (control_.choice.pending().empty()) return;
  if (control_.consultation.advisor()->is_working(Question::what_if)) {
    draw_note(fmt::format("A step with the {} is being simulated\u2026", words::kPending));
    return;
  }
  const std::shared_ptr<const Advice> advice = control_.consultation.advice(Question::what_if);
  if (advice == nullptr || advice->settings != control_.choice.pending().settings()) return;
  if (!advice->problem.empty()) {
    draw_coloured(look().colours.amber, "Not predicted: " + advice->problem);
    return;
  }
  if (advice->predicted.each.empty()) {
    draw_note("Predicted: a step takes as long as it does.");
    return;
  }
  const analyze::PredictedChange& change = advice->predicted.each.front();
  const double error = advice->predicted.fit_error;
  const bool is_unknown = analyze::is_within_error(change, error);
  draw_coloured(is_unknown ? look().colours.dim : look().colours.amber,
                "predicted: a step takes " + analyze::gain_words(change, "\u2192"));
  if (is_unknown) draw_note(within_error_note(error));
  if (!advice->predicted.caution.empty())
    draw_coloured(look().colours.amber, advice->predicted.caution);
}

void KnobsView::draw_proposal() {
  if (control_.consultation.advisor()->is_working(Question::tune)) {
    draw_note("Settings are being tried in simulation\u2026");
    return;
  }
  const std::shared_ptr<const Advice> advice = control_.consultation.advice(Question::tune);
  if (advice == nullptr) return;
  if (!advice->problem.empty()) {
    draw_coloured(look().colours.amber, "No proposal: " + advice->problem);
    return;
  }
  if (advice->predicted.each.empty()) {
    draw_note("The search found no settings with a shorter step.");
    return;
  }
  const analyze::PredictedChange& change = advice->predicted.each.front();
  draw_note(fmt::format(
      "proposed: {} settings, a step {}{}", change.settings.size(),
      analyze::gain_words(change, "\u2192"),
      control_.left_out_count() == 0
          ? ""
          : fmt::format("; {} of them only for another run", control_.left_out_count())));
  const double error = advice->predicted.fit_error;
  if (analyze::is_within_error(change, error)) draw_note(within_error_note(error));
  if (!advice->predicted.caution.empty())
    draw_coloured(look().colours.amber, advice->predicted.caution);
}

// The effects of changes
// ---------------------------------------------------------------------------------

void KnobsView::draw_effects() {
  const std::vector<ChangeEffect>& effects = control_.effects();
  if (effects.empty()) {
    draw_title("Effect of the last change");
    draw_empty("Nothing was changed yet. What a change did appears here by itself.");
    return;
  }
  const auto shown = std::ranges::find(effects, shown_step_, &ChangeEffect::step);
  const ChangeEffect& effect = shown == effects.end() ? effects.back() : *shown;
  const bool is_last = &effect == &effects.back();
  draw_title(is_last ? "Effect of the last change" : "Effect of a change",
             "step " + step_text(effect.step));
  draw_effect(effect);
  if (effects.size() < 2) return;
  ImGui::Dummy({0, px(4)});
  draw_note(fmt::format("{} changes, the last first", effects.size()));
  for (auto other = effects.rbegin(); other != effects.rend(); ++other) {
    const FigureEffect* time = other->figure("step_time");
    ImGui::PushID(static_cast<int>(other->step));
    const std::string label = changes_text(other->changes);
    if (ImGui::Selectable(label.c_str(), other->step == effect.step)) {
      shown_step_ = &*other == &effects.back() ? -1 : other->step;
    }
    ImGui::SetItemTooltip("step %s, %s", step_text(other->step).c_str(),
                          who_text(other->changes.front().who).c_str());
    if (time != nullptr) {
      ImGui::SameLine();
      draw_figure(fmt::format("{:+.1f}\u2009%", time->change() * 100), figure_colour(*time));
    }
    ImGui::PopID();
  }
}

void KnobsView::draw_effect(const ChangeEffect& effect) {
  draw_coloured(look().colours.amber, changes_text(effect.changes));
  const std::string& who = effect.changes.front().who;
  draw_note(who_text(who));
  if (who.starts_with("revert: ")) draw_note(who.substr(std::string_view("revert: ").size()));
  if (!effect.why_empty.empty()) {
    draw_empty(effect.why_empty);
  } else {
    draw_curve(effect);
    draw_figures(effect);
    const std::string phases = phase_note(effect);
    if (!phases.empty()) draw_note(phases);
    draw_note(noise_note(effect, pieces_.run->is_live));
  }
  ImGui::BeginDisabled(!control_.can_take_back(effect));
  ImGui::PushStyleColor(ImGuiCol_Text, look().colours.red);
  if (ImGui::Button("Revert")) control_.take_back(effect);
  ImGui::PopStyleColor();
  ImGui::SetItemTooltip("sets what was in force before this change");
  ImGui::EndDisabled();
}

void KnobsView::draw_curve(const ChangeEffect& effect) {
  constexpr std::int64_t kAround = 20;
  StepCurve curve;
  for (const rundb::StepRow& step : pieces_.steps()) {
    if (step.id < effect.step - kAround || step.id > effect.step + kAround) continue;
    curve.steps.push_back(static_cast<double>(step.id + 1));
    curve.values.push_back(static_cast<double>(step.dur) / 1e6);
  }
  if (curve.steps.empty()) return;
  const StepAxis axis{curve.steps.front(), curve.steps.back()};
  const std::vector<StepMark> marks = {{static_cast<double>(effect.step) + 0.5, ""}};
  double hovered = 0;
  draw_note("ms a step");
  draw_step_curve({.id = "##around", .size = {-1, px(84)}, .axis = axis, .begins_at_zero = true},
                  curve, marks, &hovered);
}

}  // namespace sluice::gui
