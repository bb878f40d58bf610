#include "gui/views/turning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/setting_text.h"

namespace sluice::gui {
namespace {

constexpr const char* kWho = "gui";
constexpr double kAdviceSeconds =
    30;  // between two questions about a live run, which each question slows

// Steps with a change before a prediction builds on them (profiler/analyze/run_analysis.cpp leaves
// the first two out).
constexpr std::int64_t kSettling = 4;

}  // namespace

void Turning::pick_up(const RunSnapshot* run, std::shared_ptr<const SpanStatistics> statistics) {
  if (link != nullptr) control = link->state();
  if (control != nullptr) pending.follow(*control);
  take_proposal();
  take_suggestions();
  if (run == nullptr || run->facts == nullptr || run->steps == nullptr) return;
  const std::array<std::shared_ptr<const void>, 3> from = {run->steps, run->facts, statistics};
  const std::vector<rundb::KnobChangeRow>& changes = run->facts->info.knob_changes;
  change_count_ = changes.size();
  awaits_steps_ =
      run->is_live && !changes.empty() &&
      (run->steps->empty() || run->steps->back().id < changes.back().step_id + kSettling);
  if (from == effects_of_) return;
  effects_of_ = from;
  effects = change_effects(
      changes, *run->steps,
      statistics == nullptr ? std::span<const PhaseRow>() : std::span(statistics->phases));
}

// A proposal is chosen once, as a whole, as far as it is knobs.
void Turning::take_proposal() {
  if (advisor == nullptr || !can_turn()) return;
  const std::shared_ptr<const Advice> advice = advisor->advice(Question::tune);
  if (advice == nullptr || advice->number == proposal_taken_) return;
  proposal_taken_ = advice->number;
  const std::vector<analyze::PredictedChange>& proposed = advice->predicted.each;
  if (!proposed.empty()) left_out_count = choose_all(proposed.front().settings);
}

// A change that is shown stays in the list until it gains clearly less.
void Turning::take_suggestions() {
  if (advisor == nullptr) return;
  const std::shared_ptr<const Advice> advice = advisor->advice(Question::suggest);
  if (advice == nullptr || advice->number == suggestions_taken_) return;
  suggestions_taken_ = advice->number;
  next = analyze::turn_next(advice->predicted, next.shown());
}

void Turning::ask_for_advice(const Verdict& verdict, double now_seconds) {
  if (advisor == nullptr || !verdict.why_empty.empty()) return;
  if (awaits_steps_ || now_seconds - advised_at_ < kAdviceSeconds) return;
  // The question is repeated when other knobs are in force, when there are twice as many steps, and
  // when there were too few for an answer.
  const std::size_t steps = verdict.analysis.step_count;
  const std::shared_ptr<const Advice> last = advisor->advice(Question::suggest);
  const bool had_problem = last != nullptr && !last->problem.empty();
  if (advised_steps_ > 0 && !is_outdated(Question::suggest) && steps < 2 * advised_steps_ &&
      !(had_problem && steps > advised_steps_))
    return;
  advised_steps_ = steps;
  advised_at_ = now_seconds;
  ask(Question::suggest);
}

void Turning::ask(Question question, std::vector<std::string> settings) {
  if (advisor == nullptr) return;
  asked_at_change_[static_cast<std::size_t>(question)] = change_count_;
  advisor->ask(question, std::move(settings));
}

std::shared_ptr<const Advice> Turning::advice(Question question) const {
  return advisor == nullptr || is_outdated(question) ? nullptr : advisor->advice(question);
}

bool Turning::is_outdated(Question question) const {
  return advisor != nullptr && advisor->advice(question) != nullptr &&
         asked_at_change_[static_cast<std::size_t>(question)] != change_count_;
}

std::string Turning::why_not(const RunSnapshot& run) const {
  if (can_turn()) return {};
  if (run.facts->is_simulated()) return "A simulated run has nothing to turn: simulate another.";
  if (!run.is_live) return "The run has ended; these are the values it ended with.";
  return control == nullptr ? "The run is being called\u2026" : control->why_not;
}

const std::vector<control::Knob>& Turning::knobs(const RunFacts& facts) const {
  return control == nullptr || control->knobs.empty() ? facts.knobs : control->knobs;
}

bool Turning::is_knob(const std::string& key) const {
  return control != nullptr && control->knob(key) != nullptr;
}

std::string Turning::shown_value(const control::Knob& knob) const {
  const std::string* chosen = pending.chosen(knob.key);
  return chosen == nullptr ? knob.value : *chosen;
}

void Turning::choose(const control::Knob& knob, const std::string& value) {
  pending.choose(knob.key, value, knob.value);
}

std::size_t Turning::choose_all(const std::vector<std::string>& settings) {
  std::size_t unknown_count = 0;
  for (const std::string& setting : settings) {
    const control::Knob* knob = control == nullptr ? nullptr : control->knob(key_of(setting));
    if (knob == nullptr) {
      unknown_count += 1;
    } else {
      choose(*knob, value_of(setting));
    }
  }
  return unknown_count;
}

std::string Turning::rule() const {
  return takes_back ? fmt::format("step_time>+{}%", take_back_percent) : "";
}

void Turning::apply() {
  if (!can_turn() || pending.empty() || pending.is_under_way()) return;
  control::SetRequest request;
  request.settings = pending.settings();
  request.who = kWho;
  request.revert_if = rule();
  pending.note_sent(link->set(std::move(request)));
}

void Turning::set_now(const std::vector<std::string>& settings) {
  if (!can_turn()) return;
  control::SetRequest request;
  request.settings = settings;
  request.who = kWho;
  request.revert_if = rule();
  link->set(std::move(request));
}

bool Turning::can_take_back(const ChangeEffect& effect) const {
  return can_turn() && std::ranges::any_of(effect.changes, [this](const auto& change) {
           const control::Knob* knob = control->knob(change.knob);
           return knob != nullptr && knob->value != change.old_value;
         });
}

void Turning::take_back(const ChangeEffect& effect) {
  if (!can_take_back(effect)) return;
  control::SetRequest request;
  for (const rundb::KnobChangeRow& change : effect.changes)
    request.settings.push_back(change.knob + "=" + change.old_value);
  request.who = kWho;
  link->set(std::move(request));
}

void Turning::ask_what_if() {
  if (!pending.empty()) ask(Question::what_if, pending.settings());
}

void Turning::ask_for_proposal() { ask(Question::tune); }

}  // namespace sluice::gui
