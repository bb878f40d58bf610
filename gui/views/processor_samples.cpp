#include "gui/views/processor_samples.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "base/kernel_text.h"
#include "gui/widgets/figures.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"
#include "profiler/analyze/answer.h"

namespace sluice::gui {
namespace {

using analyze::SampledFunction;
using analyze::SampledFunctions;

constexpr std::size_t kFunctionsShown = 5;
constexpr std::size_t kStagesShown = 3;
constexpr std::size_t kNameLetters = 60;

// The share of samples in each function itself, with the points by which it may be off.
void draw_functions(const char* id, const SampledFunctions& of) {
  if (!ImGui::BeginTable(id, 2)) return;
  ImGui::TableSetupColumn("share", ImGuiTableColumnFlags_WidthFixed, px(76));
  ImGui::TableSetupColumn("function", ImGuiTableColumnFlags_WidthStretch);
  for (std::size_t i = 0; i < std::min(of.by_self.size(), kFunctionsShown); ++i) {
    const SampledFunction& function = of.by_self[i];
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    draw_figure(fmt::format("{} \u00b1{:.0f}", percent_text(of.share(function.self_count)),
                            of.uncertain_points(function.self_count)));
    ImGui::TableNextColumn();
    const std::string name = short_kernel_name(what_runs(function.name), kNameLetters);
    draw_coloured(look().colours.text, name, false);
    ImGui::SetItemTooltip("%s\n%s", function.name.c_str(), function.library.c_str());
  }
  ImGui::EndTable();
}

}  // namespace

void draw_processor_samples(const analyze::SampledTime& time) {
  ImGui::Dummy({0, px(6)});
  draw_title("Processors", fmt::format("{} samples", grouped_text(time.functions.sample_count)));
  draw_note(fmt::format("threads: {} running, {} preempted, {} waiting",
                        percent_text(time.shares.running), percent_text(time.shares.preempted),
                        percent_text(time.shares.waiting)));
  if (!time.why_none.empty()) {
    draw_empty(analyze::sentence_of(time.why_none));
    return;
  }
  draw_functions("##functions", time.functions);
  for (std::size_t i = 0; i < std::min(time.stages.size(), kStagesShown); ++i) {
    const analyze::SampledStage& stage = time.stages[i];
    draw_note(fmt::format("while {} was under way, {} samples", stage.name,
                          grouped_text(stage.functions.sample_count)));
    draw_functions(fmt::format("##stage {}", i).c_str(), stage.functions);
  }
}

}  // namespace sluice::gui
