#include "gui/views/doubt_line.h"

#include "gui/data/verdict.h"
#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {

void draw_doubt_line(const RunPieces& pieces) {
  if (pieces.verdict == nullptr || pieces.verdict->doubts.empty()) return;
  const std::vector<analyze::Doubt>& doubts = pieces.verdict->doubts;
  {
    const FontScope font(look().text, Look::kSmallSize);
    draw_coloured(look().colours.amber, analyze::doubt_marks(doubts));
  }
  if (!ImGui::BeginItemTooltip()) return;
  ImGui::PushTextWrapPos(px(420));
  for (const analyze::Doubt& doubt : doubts) ImGui::TextUnformatted(doubt.sentence.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

void draw_doubts(const RunPieces& pieces) {
  if (pieces.verdict == nullptr) return;
  for (const analyze::Doubt& doubt : pieces.verdict->doubts)
    draw_coloured(look().colours.amber, doubt.sentence);
}

}  // namespace sluice::gui
