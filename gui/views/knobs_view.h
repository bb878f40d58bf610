#pragma once
// The knobs of the run: what is in force, what is chosen beside it, and what the last changes did.
//
// Thread contract: the frame thread.

#include "gui/views/run_pieces.h"
#include "gui/views/turning.h"
#include "gui/views/view.h"
#include "gui/widgets/step_plot.h"

namespace sluice::gui {

class KnobsView : public View {
 public:
  KnobsView(const RunPieces& pieces, Turning& turning);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_knobs();
  void draw_values() const;
  void draw_actions();
  void draw_prediction();
  void draw_proposal();
  void draw_effects();
  void draw_effect(const ChangeEffect& effect);
  void draw_curve(const ChangeEffect& effect);

  const RunPieces& pieces_;
  Turning& turning_;

  std::int64_t shown_step_ = -1;  // of the change whose effect is shown; -1: the last one
};

}  // namespace sluice::gui
