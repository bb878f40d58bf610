#include "gui/views/setting_choice.h"

#include <algorithm>

#include "base/setting_text.h"
#include "gui/data/advice.h"
#include "gui/data/run_snapshot.h"
#include "gui/data/span_lookup.h"

namespace sluice::gui {

// A run that is over can be begun anew where its record says all that `sluice` needs for that.
void SettingChoice::follow(std::shared_ptr<const ControlState> state, const RunSnapshot* run) {
  state_ = std::move(state);
  if (state_ != nullptr) pending_.follow(*state_);
  if (run == nullptr || run->facts == nullptr) return;
  facts_ = run->facts;
  const analyze::RunInfo& info = facts_->info;
  is_over_ = !run->is_live && run->problem.empty() && !can_turn() && !info.is_of_session() &&
             !info.meta_value("model").empty() && !info.meta_value("platform").empty();
}

std::string SettingChoice::why_not(const RunSnapshot& run) const {
  if (can_choose()) return {};
  if (!run.is_live && run.facts != nullptr && run.facts->info.is_of_session())
    return "The run has ended with these values. The program that made it computes its own "
           "gradients: a new run like it begins with that program.";
  if (!run.is_live)
    return "The run has ended with these values. Its record names no model and platform, so no new "
           "run like it can be begun from here.";
  return state_ == nullptr ? "The run is being called\u2026" : state_->why_not;
}

const std::vector<control::Knob>& SettingChoice::knobs(const RunFacts& facts) const {
  if (state_ != nullptr && !state_->knobs.empty()) return state_->knobs;
  return is_over_ && recorded_knobs_ != nullptr && !recorded_knobs_->knobs.empty()
             ? recorded_knobs_->knobs
             : facts.knobs;
}

const control::Knob* SettingChoice::find_knob(const std::string& key) const {
  if (can_turn() || facts_ == nullptr) return state_ == nullptr ? nullptr : state_->knob(key);
  const std::vector<control::Knob>& all = knobs(*facts_);
  const auto found = std::ranges::find(all, key, &control::Knob::key);
  return found == all.end() ? nullptr : &*found;
}

std::string SettingChoice::shown_value(const control::Knob& knob) const {
  const std::string* chosen = pending_.chosen(knob.key);
  return chosen == nullptr ? knob.value : *chosen;
}

void SettingChoice::choose(const control::Knob& knob, const std::string& value) {
  pending_.choose(knob.key, value, knob.value);
}

std::size_t SettingChoice::choose_all(const std::vector<std::string>& settings) {
  std::size_t unknown_count = 0;
  for (const std::string& setting : settings) {
    const control::Knob* knob = find_knob(key_of(setting));
    if (knob != nullptr) {
      choose(*knob, value_of(setting));
    } else if (is_over_ && facts_ != nullptr) {
      pending_.choose(key_of(setting), value_of(setting),
                      facts_->info.value_in_force(key_of(setting)));
    } else {
      unknown_count += 1;
    }
  }
  return unknown_count;
}

std::vector<std::string> SettingChoice::chosen_without_knob() const {
  std::vector<std::string> settings = pending_.settings();
  std::erase_if(settings, [this](const std::string& one) { return is_knob(key_of(one)); });
  return settings;
}

}  // namespace sluice::gui
