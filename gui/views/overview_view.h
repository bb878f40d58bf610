#pragma once
// Why a step takes as long as it does: the verdict in words and bars, and what to turn next.
//
// Thread contract: the frame thread.

#include <cstddef>

#include "gui/views/foreground.h"
#include "gui/views/run_control.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"

namespace sluice::analyze {
struct RunAnalysis;
}

namespace sluice::gui {

struct CauseShare;

class OverviewView : public View {
 public:
  OverviewView(const RunPieces& pieces, RunControl& control, TimelineState& timeline,
               Foreground& foreground);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_causes(const Verdict& verdict);
  void draw_cause(const CauseShare& cause, const analyze::RunAnalysis& analysis);
  void toggle_cause(analyze::Cause cause, const analyze::RunAnalysis& analysis);
  bool shows(analyze::Cause cause) const;
  void draw_findings(const Verdict& verdict);

  const RunPieces& pieces_;
  RunControl& control_;
  TimelineState& timeline_;
  Foreground& foreground_;
  // The most that there were: of a live run causes come and go, and what stands below them, buttons
  // among it, stays where it is.
  std::size_t cause_rows_ = 0;
};

}  // namespace sluice::gui
