#pragma once
// The knobs of the run: what is in force, what is chosen beside it, and what the last changes did.
//
// Thread contract: the frame thread.

#include "gui/views/view.h"
#include "gui/widgets/step_plot.h"

namespace sluice::gui {

class KnobsView : public View {
 public:
  KnobsView();
  const char* help() const override;
  void draw_content(Session& session) override;

 private:
  void draw_knobs(Session& session);
  void draw_values(const Session& session) const;
  void draw_actions(Session& session);
  void draw_prediction(Session& session);
  void draw_proposal(Session& session);
  void draw_effects(Session& session);
  void draw_effect(Session& session, const ChangeEffect& effect);
  void draw_curve(const Session& session, const ChangeEffect& effect);

  std::int64_t shown_step_ = -1;  // of the change whose effect is shown; -1: the last one
};

}  // namespace sluice::gui
