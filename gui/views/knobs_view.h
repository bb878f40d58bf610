#pragma once
// The knobs of the run: what is in force, what is chosen beside it, and what the last changes did.
//
// Thread contract: the frame thread.

#include <functional>
#include <string>

#include "gui/data/background.h"
#include "gui/data/child_process.h"
#include "gui/data/new_run.h"
#include "gui/views/run_control.h"
#include "gui/views/run_pieces.h"
#include "gui/views/view.h"
#include "gui/widgets/step_plot.h"

namespace sluice::gui {

class KnobsView : public View {
 public:
  // `wake`: draw again, from any thread; it lives longer.
  KnobsView(const RunPieces& pieces, RunControl& control, const std::function<void()>& wake);
  const char* help() const override;
  void draw_content() override;

 private:
  void draw_knobs();
  void draw_values() const;
  void draw_actions();
  void draw_apply(float width);
  void draw_choice_buttons(float width, bool is_narrow);
  void draw_take_back();
  void draw_answer_of_run() const;
  // For a run that is over: what is chosen as a command, and a new run with it.
  void draw_new_run();
  void draw_command();
  void draw_prediction();
  void draw_proposal();
  void draw_effects();
  void draw_effect(const ChangeEffect& effect);
  void draw_curve(const ChangeEffect& effect);

  const RunPieces& pieces_;
  RunControl& control_;
  const std::function<void()>& wake_;

  // The names in a new run's command, looked up for `named_of_`.
  struct Named {
    std::string program;
    std::string output;
  };
  Background<Named> named_;
  const RunFeed* named_of_ = nullptr;
  std::int64_t shown_step_ = -1;  // of the change whose effect is shown; -1: the last one
};

}  // namespace sluice::gui
