#pragma once
// The window's control of a run, by its parts: the line to it, the choice, the advice, the outcome
// of the changes before. Views and commands share it.
//
// Thread contract: the frame thread.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gui/data/change_effects.h"
#include "gui/data/control_link.h"
#include "gui/views/consultation.h"
#include "gui/views/setting_choice.h"

namespace sluice::gui {

struct SpanStatistics;

// The run takes a change back that makes steps longer by more than this.
struct TakeBackRule {
  bool is_on = false;
  int percent = 5;
  std::string text() const;  // as --revert-if; empty: it does not
};

class RunControl {
 public:
  std::unique_ptr<ControlLink> link;  // null: no run is open
  SettingChoice choice;
  Consultation consultation;
  TakeBackRule take_back_rule;

  // Once a frame.
  void pick_up(const RunSnapshot* run, std::shared_ptr<const SpanStatistics> statistics);
  // The outcome of all changes of the run, in order.
  const std::vector<ChangeEffect>& effects() const { return effects_; }
  // Settings of the proposal that was chosen last which are no knobs.
  std::size_t left_out_count() const { return left_out_count_; }

  void apply();
  // Sends these at once, beside what is chosen.
  void set_now(const std::vector<std::string>& settings);
  bool can_take_back(const ChangeEffect& effect) const;
  void take_back(const ChangeEffect& effect);
  void ask_what_if();
  void ask_for_proposal();

  // A new run with what is chosen is asked for; the shell begins it.
  void ask_for_new_run() { wants_new_run_ = choice.is_for_new_run(); }
  bool take_new_run() { return std::exchange(wants_new_run_, false); }
  // Why the last one could not be begun; empty: it could, or none was asked for.
  const std::string& new_run_problem() const { return new_run_problem_; }
  void note_new_run(const std::string& problem) { new_run_problem_ = problem; }

 private:
  std::vector<ChangeEffect> effects_;
  // The data that `effects_` was made from; kept, so that nothing new has the same address.
  std::array<std::shared_ptr<const void>, 3> effects_of_;
  std::size_t left_out_count_ = 0;
  bool wants_new_run_ = false;
  std::string new_run_problem_;
};

}  // namespace sluice::gui
