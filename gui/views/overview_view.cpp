#include "gui/views/overview_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/setting_text.h"
#include "base/words.h"
#include "gui/data/span_lookup.h"
#include "gui/data/step_paths.h"
#include "gui/data/verdict.h"
#include "gui/views/doubt_line.h"
#include "gui/views/looked.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {
namespace {

std::string title_of(const analyze::RunAnalysis& analysis) {
  return fmt::format("{} {}", words::kWhy,
                     analysis.steps.empty() ? words::kAsLong : time_text(analysis.dur));
}

// Shares are of one rank; who is waited for stands below them.
std::string steps_note(const analyze::RunAnalysis& analysis) {
  if (analysis.steps.empty()) return {};
  const char* whose = analysis.ranks ? "rank 0, " : "";
  if (analysis.steps.size() == 1) return whose + ("step " + step_text(analysis.steps.front()));
  return fmt::format("{}steps {}\u2013{}", whose, step_text(analysis.steps.front()),
                     step_text(analysis.steps.back()));
}

const rundb::StepRow* step_of_id(const std::vector<rundb::StepRow>& steps, std::int64_t id) {
  const auto found = std::ranges::lower_bound(steps, id, {}, &rundb::StepRow::id);
  return found == steps.end() || found->id != id ? nullptr : &*found;
}

// The gain of a change, with room for a button at its right; returns where that stands.
float draw_gain(const analyze::PredictedChange& change, float button) {
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
  ImGui::PushTextWrapPos(right - button - px(70));
  ImGui::TextUnformatted(analyze::change_words(change, "\u2192").c_str());
  ImGui::PopTextWrapPos();
  const std::string gain = fmt::format("{:+.0f}\u2009%", change.change * 100);
  ImGui::SameLine(right - button - px(8) - figure_size(gain).x);
  {
    const FontScope font(look().mono, Look::kTextSize);
    draw_coloured(change.change < 0 ? look().colours.green : look().colours.dim, gain, false);
  }
  ImGui::SetItemTooltip("simulated: %s", analyze::gain_words(change, "\u2192").c_str());
  return right - button;
}

// From which time to which, both simulated, and why.
void draw_reason(const analyze::PredictedChange& change) {
  draw_note(fmt::format("{}{}{}", analyze::gain_words(change, "\u2192"),
                        change.why.empty() ? "" : ": ", change.why));
}

// Beside a run that is over: chosen for a new one, in Knobs.
void draw_choose(RunControl& control, Foreground& foreground,
                 const analyze::PredictedChange& change) {
  if (ImGui::SmallButton("Choose")) {
    control.choice.choose_all(change.settings);
    foreground.bring("Knobs");
  }
  ImGui::SetItemTooltip("for a new run like this one, which Knobs begins");
}

void draw_knob_change(RunControl& control, Foreground& foreground,
                      const analyze::PredictedChange& change) {
  const float at = draw_gain(change, control.choice.can_choose() ? px(64) : 0);
  if (control.choice.can_choose()) ImGui::SameLine(at);
  if (control.choice.can_turn()) {
    if (ImGui::SmallButton(words::kApply)) control.set_now(change.settings);
  } else if (control.choice.is_for_new_run()) {
    draw_choose(control, foreground, change);
  }
  draw_reason(change);
}

void draw_change_of_another_run(RunControl& control, Foreground& foreground,
                                const analyze::PredictedChange& change) {
  const std::string& setting = change.settings.front();
  ImGui::SameLine(draw_gain(change, px(64)));
  if (control.choice.is_for_new_run()) {
    draw_choose(control, foreground, change);
    draw_reason(change);
    return;
  }
  if (ImGui::SmallButton("Copy")) ImGui::SetClipboardText(("--set " + setting).c_str());
  ImGui::SetItemTooltip("Needs a new run (%s is fixed while a run is live): copies --set %s",
                        key_of(setting).c_str(), setting.c_str());
  draw_reason(change);
}

void draw_together(RunControl& control, Foreground& foreground,
                   const analyze::PredictedChange& change) {
  draw_note(std::string(words::kTogether));
  const float at = draw_gain(change, control.choice.can_choose() ? px(64) : 0);
  if (!control.choice.can_choose()) return;
  ImGui::SameLine(at);
  if (control.choice.is_for_new_run()) return draw_choose(control, foreground, change);
  if (ImGui::SmallButton(words::kTune)) {
    control.ask_for_proposal();
    foreground.bring("Knobs");
  }
  ImGui::SetItemTooltip("searches again and chooses the settings in Knobs, to be applied there");
}

// Without a simulation: what the analysis alone says, whose gain is not known.
void draw_unpredicted(const Verdict& verdict) {
  for (const analyze::Suggestion& suggestion : verdict.suggestions) {
    ImGui::TextUnformatted(suggestion.setting.c_str());
    draw_note(suggestion.why);
  }
}

void draw_predicted(RunControl& control, Foreground& foreground, const Advice& advice) {
  const analyze::TurnNext& next = control.consultation.next();
  const std::string& caution = advice.predicted.caution;
  if (!caution.empty()) draw_coloured(look().colours.amber, caution);
  if (next.now.empty() && next.another_run.empty()) {
    draw_empty(analyze::none_words(advice.predicted));
  }
  int index = 0;
  for (const analyze::PredictedChange& change : next.now) {
    ImGui::PushID(index++);
    draw_knob_change(control, foreground, change);
    ImGui::PopID();
  }
  if (!next.another_run.empty()) {
    draw_note(std::string(words::kAnotherRun) + ": add to the command of a new one");
  }
  for (const analyze::PredictedChange& change : next.another_run) {
    ImGui::PushID(index++);
    draw_change_of_another_run(control, foreground, change);
    ImGui::PopID();
  }
  if (next.together) draw_together(control, foreground, *next.together);
}

void draw_suggestions(const Verdict& verdict, RunControl& control, Foreground& foreground) {
  const Advisor& advisor = *control.consultation.advisor();
  const bool is_working = advisor.is_working(Question::suggest);
  const std::shared_ptr<const Advice> advice = control.consultation.advice(Question::suggest);
  ImGui::Dummy({0, px(2)});
  ImGui::Separator();
  const bool is_predicted = advice != nullptr && advice->problem.empty();
  draw_title(std::string(words::kTurnNext), is_working     ? "simulating\u2026"
                                            : is_predicted ? "predicted by simulation"
                                                           : "what should help");
  if (is_predicted) {
    draw_predicted(control, foreground, *advice);
    return;
  }
  // Settings without a figure would be taken for what the simulation found.
  if (is_working) return;
  draw_unpredicted(verdict);
  if (advice != nullptr) draw_note("Not predicted: " + advice->problem);
  if (control.consultation.is_outdated(Question::suggest))
    draw_note("Knobs have changed since the last prediction; a new one is asked for soon.");
}

}  // namespace

OverviewView::OverviewView(const RunPieces& pieces, RunControl& control, TimelineState& timeline,
                           Foreground& foreground)
    : View(words::kOverview),
      pieces_(pieces),
      control_(control),
      timeline_(timeline),
      foreground_(foreground) {}
const char* OverviewView::help() const { return "The verdict, its causes, and what to turn next"; }

void OverviewView::draw_content() {
  if (pieces_.verdict == nullptr) {
    draw_title(fmt::format("{} {}", words::kWhy, words::kAsLong));
    draw_empty("The steps are being looked at\u2026");
    return;
  }
  const Verdict& verdict = *pieces_.verdict;
  draw_title(title_of(verdict.analysis), steps_note(verdict.analysis));
  const std::string clock = pieces_.facts().info.clock_note();
  if (!clock.empty()) draw_note(clock);
  draw_doubts(pieces_);
  if (!verdict.why_empty.empty()) {
    draw_empty(verdict.why_empty);
    draw_findings(verdict);
    draw_looked(verdict.analysis.answers);
    return;
  }
  cause_rows_ = std::max(cause_rows_, verdict.causes.size());
  draw_causes(verdict);
  draw_suggestions(verdict, control_, foreground_);
  ImGui::Dummy({0, px(2)});
  ImGui::Separator();
  draw_findings(verdict);
  draw_looked(verdict.analysis.answers);
}

void OverviewView::draw_causes(const Verdict& verdict) {
  std::vector<StripPart> parts;
  for (const CauseShare& cause : verdict.causes) {
    const std::string name(analyze::cause_label(cause.cause));
    parts.push_back(
        {cause.share, colour_of(cause.cause), fmt::format("{} {} %", name, cause.percent)});
  }
  draw_strip("##shares", parts, px(14));
  ImGui::Dummy({0, px(2)});
  // The names first, then the shares; times where there is room.
  const bool is_narrow = ImGui::GetContentRegionAvail().x < px(260);
  if (!ImGui::BeginTable("##causes", 4)) return;
  ImGui::TableSetupColumn("colour", ImGuiTableColumnFlags_WidthFixed, px(10));
  ImGui::TableSetupColumn("what", ImGuiTableColumnFlags_WidthStretch);
  ImGui::TableSetupColumn(
      "time", ImGuiTableColumnFlags_WidthFixed | (is_narrow ? ImGuiTableColumnFlags_Disabled : 0),
      px(74));
  ImGui::TableSetupColumn("share", ImGuiTableColumnFlags_WidthFixed, px(44));
  for (const CauseShare& cause : verdict.causes) draw_cause(cause, verdict.analysis);
  for (std::size_t row = verdict.causes.size(); row < cause_rows_; ++row) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted("");
  }
  ImGui::EndTable();
}

void OverviewView::draw_cause(const CauseShare& cause, const analyze::RunAnalysis& analysis) {
  const std::string name(analyze::cause_label(cause.cause));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  draw_dot(colour_of(cause.cause));
  ImGui::TableNextColumn();
  if (ImGui::Selectable(name.c_str(), timeline_.marked_cause() == cause.cause,
                        ImGuiSelectableFlags_SpanAllColumns))
    toggle_cause(cause.cause, analysis);
  ImGui::SetItemTooltip("%s\nclick: mark these spans of the critical path on the timeline",
                        std::string(analyze::cause_phrase(cause.cause)).c_str());
  ImGui::TableNextColumn();
  draw_figure(time_text(cause.dur_ns), look().colours.dim);
  ImGui::TableNextColumn();
  draw_figure(cause.percent == 0 ? "<1\u2009%" : fmt::format("{}\u2009%", cause.percent));
}

// The same row again unmarks. Where the view shows none of it, the step that spends the largest
// share on it comes into view.
void OverviewView::toggle_cause(analyze::Cause cause, const analyze::RunAnalysis& analysis) {
  if (timeline_.marked_cause() == cause) {
    timeline_.mark_cause({});
    return;
  }
  timeline_.mark_cause(cause);
  foreground_.bring("Timeline");
  const rundb::StepRow* step =
      step_of_id(pieces_.steps(), analysis.step_of_most[analyze::index_of(cause)].value_or(-1));
  if (step != nullptr && !shows(cause)) timeline_.view.show_step(*step);
}

bool OverviewView::shows(analyze::Cause cause) const {
  if (pieces_.paths == nullptr) return false;
  const TimeRange& view = timeline_.view.range();
  return std::ranges::any_of(pieces_.paths->steps, [&](const auto& path) {
    return std::ranges::any_of(path->pieces, [&](const analyze::PathPiece& piece) {
      return piece.cause == cause && piece.ts < view.end && piece.ts + piece.dur > view.begin;
    });
  });
}

void OverviewView::draw_findings(const Verdict& verdict) {
  int index = 0;
  for (const analyze::Remark& finding : verdict.findings) {
    // Said above already, where there are no shares.
    if (!verdict.why_empty.empty() && finding.beside_shares.empty()) continue;
    const ImU32 colour = finding.is_warning ? look().colours.amber : look().colours.text;
    const rundb::StepRow* step = step_of_id(pieces_.steps(), finding.step);
    if (step == nullptr) {
      draw_coloured(colour, finding.text);
      continue;
    }
    ImGui::PushID(index++);
    const std::string id = "about step " + step_text(step->id);
    if (draw_link(id.c_str(), finding.text, colour)) {
      timeline_.show_step(*step);
      foreground_.bring("Details");
      foreground_.bring("Timeline");
    }
    ImGui::SetItemTooltip("click: show step %s on the timeline, and why it took as long",
                          step_text(step->id).c_str());
    ImGui::PopID();
  }
}

}  // namespace sluice::gui
