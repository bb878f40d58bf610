#include "gui/views/looked.h"

#include "gui/widgets/look.h"
#include "gui/widgets/panel.h"

namespace sluice::gui {

void draw_looked(std::span<const analyze::Answer> answers) {
  if (answers.empty()) return;
  ImGui::Dummy({0, px(2)});
  ImGui::Separator();
  draw_title(std::string(analyze::kLookedFor));
  for (const analyze::Answer& answer : analyze::without_result(answers)) {
    const bool is_blind = answer.outcome == analyze::Outcome::could_not_look;
    draw_coloured(is_blind ? look().colours.amber : look().colours.dim, answer.words());
  }
  const std::string answered = analyze::answered_words(answers);
  if (!answered.empty()) draw_coloured(look().colours.dim, answered);
}

}  // namespace sluice::gui
