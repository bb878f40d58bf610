#include "gui/views/run_control.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "gui/data/run_snapshot.h"
#include "gui/data/span_scan.h"

namespace sluice::gui {

std::string TakeBackRule::text() const {
  return is_on ? fmt::format("step_time>+{}%", percent) : "";
}

void RunControl::pick_up(const RunSnapshot* run, std::shared_ptr<const SpanStatistics> statistics) {
  choice.follow(link == nullptr ? nullptr : link->state(), run);
  if (const Advisor* advisor = consultation.advisor();
      advisor != nullptr && choice.is_for_new_run()) {
    choice.take_recorded(advisor->advice(Question::knobs));
    if (advisor->advice(Question::knobs) == nullptr && !advisor->is_working(Question::knobs))
      consultation.ask(Question::knobs);
  }
  // As far as it is knobs.
  if (choice.can_choose()) {
    if (const auto proposal = consultation.take_proposal())
      left_out_count_ = choice.choose_all(*proposal);
  }
  consultation.pick_up(run);
  if (run == nullptr || run->facts == nullptr || run->steps == nullptr) return;
  const std::array<std::shared_ptr<const void>, 3> from = {run->steps, run->facts, statistics};
  if (from == effects_of_) return;
  effects_of_ = from;
  effects_ = change_effects(
      run->facts->info.knob_changes, *run->steps,
      statistics == nullptr ? std::span<const PhaseRow>() : std::span(statistics->phases));
}

void RunControl::apply() {
  const PendingSettings& pending = choice.pending();
  if (!choice.can_turn() || pending.empty() || pending.is_under_way()) return;
  control::SetRequest request;
  request.settings = pending.settings();
  request.who = kWho;
  request.revert_if = take_back_rule.text();
  choice.note_sent(link->set(std::move(request)));
}

void RunControl::set_now(const std::vector<std::string>& settings) {
  if (!choice.can_turn()) return;
  control::SetRequest request;
  request.settings = settings;
  request.who = kWho;
  request.revert_if = take_back_rule.text();
  link->set(std::move(request));
}

bool RunControl::can_take_back(const ChangeEffect& effect) const {
  return choice.can_turn() && std::ranges::any_of(effect.changes, [this](const auto& change) {
           const control::Knob* knob = choice.state()->knob(change.knob);
           return knob != nullptr && knob->value != change.old_value;
         });
}

void RunControl::take_back(const ChangeEffect& effect) {
  if (!can_take_back(effect)) return;
  control::SetRequest request;
  for (const rundb::KnobChangeRow& change : effect.changes)
    request.settings.push_back(change.knob + "=" + change.old_value);
  request.who = kWho;
  link->set(std::move(request));
}

void RunControl::ask_what_if() {
  if (!choice.pending().empty()) consultation.ask(Question::what_if, choice.pending().settings());
}

// A state that exists keeps its subgroups; a new run makes its own.
void RunControl::ask_for_proposal() {
  consultation.ask(Question::tune, choice.is_for_new_run()
                                       ? std::vector<std::string>()
                                       : std::vector<std::string>{"subgroup_elements"});
}

}  // namespace sluice::gui
