#pragma once
// What the window does to a run: the line to it, what is chosen and not yet in force, what became
// of the changes before, and what further ones should gain. What is chosen of a run that has
// ended is for a new run like it. Views and commands share it.
//
// Thread contract: the frame thread.

#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gui/data/advisor.h"
#include "gui/data/change_effects.h"
#include "gui/data/control_link.h"
#include "gui/data/pending_settings.h"
#include "gui/data/run_feed.h"

namespace sluice::gui {

struct Turning {
  std::unique_ptr<ControlLink> link;  // null: no run is open
  std::unique_ptr<Advisor> advisor;   // null: the same
  PendingSettings pending;
  // The run takes a change back that makes steps longer by more than this.
  bool takes_back = false;
  int take_back_percent = 5;

  // Picked up once a frame.
  std::shared_ptr<const ControlState> control;
  std::vector<ChangeEffect> effects;  // of all changes of the run, in order
  analyze::TurnNext next;             // of the last answer to Question::suggest
  // Settings of the chosen proposal that are no knobs.
  std::size_t left_out_count = 0;

  void pick_up(const RunSnapshot* run, std::shared_ptr<const SpanStatistics> statistics);
  // Asks what every setting would gain, when the run tells something new about it. `now_seconds`
  // comes from a steady clock; a live run is asked about at most twice a minute.
  void ask_for_advice(const Verdict& verdict, double now_seconds);
  // The last answer, unless knobs have changed since it was asked for; null: none that holds.
  std::shared_ptr<const Advice> advice(Question question) const;
  // There is an answer, and its settings are no longer in force.
  bool is_outdated(Question question) const;

  bool can_turn() const { return control != nullptr && control->is_connected; }
  // The run is over, and another can be begun with its settings.
  bool is_for_new_run() const { return is_over_; }
  // Settings can be chosen: for the run, or for a new one.
  bool can_choose() const { return can_turn() || is_for_new_run(); }
  // Why nothing can be chosen, in one sentence; empty where something can.
  std::string why_not(const RunSnapshot& run) const;
  // The run's own while or since there is a line to it; else those that its record has.
  const std::vector<control::Knob>& knobs(const RunFacts& facts) const;
  bool is_knob(const std::string& key) const;
  // What is chosen and no knob: of a new run, which may have any setting.
  std::vector<std::string> chosen_without_knob() const;

  // What is chosen, else what is in force.
  std::string shown_value(const control::Knob& knob) const;
  void choose(const control::Knob& knob, const std::string& value);
  // Chooses all settings that are knobs, and counts the others.
  std::size_t choose_all(const std::vector<std::string>& settings);
  void discard() { pending.clear(); }
  void apply();
  // Sends these at once, beside what is chosen.
  void set_now(const std::vector<std::string>& settings);
  bool can_take_back(const ChangeEffect& effect) const;
  void take_back(const ChangeEffect& effect);
  void ask_what_if();
  void ask_for_proposal();

  // A new run with what is chosen is asked for; the shell begins it.
  void ask_for_new_run() { wants_new_run_ = is_over_; }
  bool take_new_run() { return std::exchange(wants_new_run_, false); }
  // Why the last one could not be begun.
  std::string new_run_problem;

 private:
  const control::Knob* find_knob(const std::string& key) const;
  std::string rule() const;

  void ask(Question question, std::vector<std::string> settings = {});

  bool is_over_ = false;
  bool wants_new_run_ = false;
  std::shared_ptr<const RunFacts> facts_;         // picked up last
  std::shared_ptr<const Advice> recorded_knobs_;  // with words and help, of a run that is over
  std::size_t change_count_ = 0;                  // of knobs, in the record so far
  bool awaits_steps_ = false;                     // with what was changed last
  // How many changes there were when a question was asked, by its number.
  std::map<std::uint64_t, std::size_t> asked_at_change_;
  std::size_t advised_steps_ = 0;  // recorded when the advisor was asked last; 0: never
  double advised_at_ = -1e9;

  void pick_up_end(const RunSnapshot* run);
  void take_proposal();
  void take_suggestions();

  std::uint64_t proposal_taken_ = 0;
  std::uint64_t suggestions_taken_ = 0;
  // What `effects` was made from; kept, so that nothing new has the same address.
  std::array<std::shared_ptr<const void>, 3> effects_of_;
};

}  // namespace sluice::gui
