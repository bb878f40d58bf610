#pragma once
// The settings of the open run that somebody chose and that are not yet in force. While there is a
// line to the run, of its knobs; once the run is over, of any setting, for a new run like it.
//
// Thread contract: the frame thread.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gui/data/pending_settings.h"

namespace sluice::gui {

struct Advice;
struct RunFacts;
struct RunSnapshot;

class SettingChoice {
 public:
  // Once a frame. Null: there is no line to the run, or nothing of it was read yet.
  void follow(std::shared_ptr<const ControlState> state, const RunSnapshot* run);
  // The knobs of a run that is over, with words and help; null: they are not known.
  void take_recorded(std::shared_ptr<const Advice> knobs) { recorded_knobs_ = std::move(knobs); }

  // Null: no run is open, or it was not called yet.
  const ControlState* state() const { return state_.get(); }
  bool can_turn() const { return state_ != nullptr && state_->is_connected; }
  // The run is over, and another can be begun with its settings.
  bool is_for_new_run() const { return is_over_; }
  // Settings can be chosen: for the run, or for a new one.
  bool can_choose() const { return can_turn() || is_for_new_run(); }
  // Why nothing can be chosen, in one sentence; empty where something can.
  std::string why_not(const RunSnapshot& run) const;

  // The run's own while or since there is a line to it; else those that its record has.
  const std::vector<control::Knob>& knobs(const RunFacts& facts) const;
  bool is_knob(const std::string& key) const { return find_knob(key) != nullptr; }
  // The chosen value, else the one in force.
  std::string shown_value(const control::Knob& knob) const;

  void choose(const control::Knob& knob, const std::string& value);
  // Chooses all settings that are knobs, or any for a new run; how many of them it left out.
  std::size_t choose_all(const std::vector<std::string>& settings);
  void discard() { pending_.clear(); }
  void note_sent(std::uint64_t number) { pending_.note_sent(number); }

  const PendingSettings& pending() const { return pending_; }
  // The chosen settings that are no knobs: of a new run, which may have any setting.
  std::vector<std::string> chosen_without_knob() const;

 private:
  const control::Knob* find_knob(const std::string& key) const;

  PendingSettings pending_;
  std::shared_ptr<const ControlState> state_;
  std::shared_ptr<const RunFacts> facts_;
  std::shared_ptr<const Advice> recorded_knobs_;
  bool is_over_ = false;
};

}  // namespace sluice::gui
