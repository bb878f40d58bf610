#pragma once
// Which parts of the open run an export can be of: what is measured, what is seen, all of it.
//
// Thread contract: the frame thread.

#include <string>
#include <vector>

#include "gui/data/export_run.h"

namespace sluice::rundb {
struct StepRow;
}

namespace sluice::gui {

class TimelineState;

struct ExportChoice {
  std::string name;  // "visible range: steps 11 to 20"
  ExportSteps steps;
};

// The narrowest first, the whole run last; a range counts as the steps that it touches. No range
// that is the whole run, or that touches no step, is among them.
std::vector<ExportChoice> export_choices(const std::vector<rundb::StepRow>& steps,
                                         const TimelineState& timeline);

}  // namespace sluice::gui
