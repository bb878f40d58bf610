#include "gui/views/explained_steps.h"

#include <fmt/format.h>

#include "gui/views/processor_samples.h"
#include "gui/views/run_colours.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "profiler/analyze/answer.h"
#include "profiler/analyze/step_explanation.h"

namespace sluice::gui {
namespace {

using analyze::ExplainedCause;
using analyze::StepExplanation;

constexpr float kRoomForUsual = 330;  // in a narrower pane only the tooltip has what is usual

std::string difference_text(TimeNs more_ns) {
  if (more_ns == 0) return time_text(0);
  return (more_ns < 0 ? "\u2212" : "+") + time_text(std::abs(more_ns));
}

class ExplainedSteps {
 public:
  ExplainedSteps(const StepExplanation& of, TimelineState& timeline, Foreground& foreground)
      : of_(of), timeline_(timeline), foreground_(foreground) {}

  void draw() {
    const std::string name = of_.name();
    draw_title(analyze::sentence_of(name).substr(0, name.size()));
    if (of_.dur > 0)  // else the record does not have them
      draw_coloured(of_.is_beyond_noise ? look().colours.amber : look().colours.text, of_.words());
    for (const std::string& note : of_.notes) draw_note(note);
    if (!of_.why_unknown.empty()) {
      draw_empty(analyze::sentence_of(of_.why_unknown));
      return;
    }
    draw_reasons();
    draw_causes();
  }

 private:
  // The sentences first: they are the answer.
  void draw_reasons() {
    int index = 0;
    for (const ExplainedCause& cause : of_.causes) {
      if (!cause.reason) continue;
      ImGui::PushID(index++);
      if (cause.reason->spans.empty()) {
        draw_coloured(look().colours.text, cause.reason->words);
      } else if (draw_link("reason", cause.reason->words, look().colours.accent)) {
        show_spans(cause);
      }
      ImGui::PopID();
    }
  }

  // The worst operation, and on the timeline all of this cause.
  void show_spans(const ExplainedCause& cause) {
    timeline_.mark_cause(cause.cause);
    timeline_.go_to(cause.reason->spans.front());
    foreground_.bring("Timeline");
  }

  void draw_causes() {
    ImGui::Dummy({0, px(2)});
    shows_usual_ = of_.has_usual() && ImGui::GetContentRegionAvail().x >= px(kRoomForUsual);
    const int columns = 3 + (of_.has_usual() ? 1 : 0) + (shows_usual_ ? 1 : 0);
    if (!ImGui::BeginTable("##explained", columns)) return;
    ImGui::TableSetupColumn("##colour", ImGuiTableColumnFlags_WidthFixed, px(10));
    ImGui::TableSetupColumn("cause", ImGuiTableColumnFlags_WidthStretch);
    ImGui::TableSetupColumn("here", ImGuiTableColumnFlags_WidthFixed, px(64));
    if (shows_usual_) ImGui::TableSetupColumn("usual", ImGuiTableColumnFlags_WidthFixed, px(64));
    if (of_.has_usual()) ImGui::TableSetupColumn("more", ImGuiTableColumnFlags_WidthFixed, px(72));
    ImGui::TableHeadersRow();
    for (const ExplainedCause& cause : of_.causes) {
      if (of_.is_worth_a_line(cause)) draw_cause(cause);
    }
    ImGui::EndTable();
  }

  void draw_cause(const ExplainedCause& cause) {
    const bool is_small = of_.has_usual() && cause.is_within_noise;
    const ImU32 colour = is_small ? look().colours.dim : look().colours.text;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_dot(colour_of(cause.cause));
    ImGui::TableNextColumn();
    ImGui::PushStyleColor(ImGuiCol_Text, colour);
    const std::string label(analyze::cause_label(cause.cause));
    if (ImGui::Selectable(label.c_str(), timeline_.marked_cause() == cause.cause,
                          ImGuiSelectableFlags_SpanAllColumns)) {
      if (cause.reason && !cause.reason->spans.empty()) {
        show_spans(cause);
      } else {
        timeline_.mark_cause(cause.cause);
        foreground_.bring("Timeline");
      }
    }
    ImGui::PopStyleColor();
    ImGui::SetItemTooltip("%s", of_.words_of(cause).c_str());
    ImGui::TableNextColumn();
    draw_figure(time_text(cause.ns), colour);
    if (!of_.has_usual()) return;
    if (shows_usual_) {
      ImGui::TableNextColumn();
      draw_figure(time_text(cause.usual_ns), look().colours.dim);
    }
    ImGui::TableNextColumn();
    const bool is_much = !is_small && cause.more_ns() > 0;
    draw_figure(difference_text(cause.more_ns()), is_much ? look().colours.amber : colour);
  }

  const StepExplanation& of_;
  TimelineState& timeline_;
  Foreground& foreground_;
  bool shows_usual_ = false;
};

}  // namespace

void draw_explained_steps(const RunPieces& pieces, TimelineState& timeline,
                          Foreground& foreground) {
  const StepExplanation* of = pieces.explanation.get();
  if (of == nullptr || !(of->steps == *timeline.explained())) {
    draw_title("Details");
    draw_empty(fmt::format("Step {} is being looked at\u2026", timeline.explained()->first + 1));
    return;
  }
  ExplainedSteps(*of, timeline, foreground).draw();
  const analyze::SampledTime* samples = pieces.samples.get();
  if (samples != nullptr && samples->steps == timeline.explained())
    draw_processor_samples(*samples);
}

}  // namespace sluice::gui
