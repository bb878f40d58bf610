#pragma once
// Changes of knobs as marks on an axis of steps.
//
// Thread contract: the frame thread.

#include <string>
#include <vector>

#include "gui/data/run_facts.h"
#include "gui/widgets/step_plot.h"

namespace sluice::gui {

inline std::vector<StepMark> marks_of(const RunFacts& facts) {
  std::vector<StepMark> marks;
  for (const ChangeMark& change : facts.changes)
    marks.push_back({static_cast<double>(change.step + 1), change.text});
  return marks;
}

// Who changed it, behind what was changed.
inline std::string who_text(const std::string& who) {
  if (who == "gui") return "from a window";
  if (who == "settings") return "planned";
  if (who.starts_with("revert: ")) return "reverted by the run";
  return "by " + who;
}

}  // namespace sluice::gui
