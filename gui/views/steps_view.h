#pragma once
// Time, loss and learning rate of every step, with changes of knobs marked.
//
// Thread contract: the frame thread.

#include "gui/views/foreground.h"
#include "gui/views/run_pieces.h"
#include "gui/views/timeline_state.h"
#include "gui/views/view.h"
#include "gui/widgets/step_plot.h"

namespace sluice::gui {

class StepsView : public View {
 public:
  StepsView(const RunPieces& pieces, TimelineState& timeline, Foreground& foreground);
  const char* help() const override;
  void draw_content() override;

 private:
  void make_curves();
  void draw_losses(const CurvePlot& plot, const std::vector<StepMark>& marks);
  void draw_step_tip(double number);

  const RunPieces& pieces_;
  TimelineState& timeline_;
  Foreground& foreground_;
  // Curves are made when there are further steps, not each frame.
  const rundb::StepRow* shown_of_ = nullptr;
  std::size_t shown_count_ = 0;
  const rundb::ValidationRow* shown_validations_ = nullptr;
  StepCurve times_;
  StepCurve losses_;  // and of validations
  StepCurve rates_;
};

}  // namespace sluice::gui
