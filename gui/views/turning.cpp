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
  pick_up_end(run);
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

// A run that is over can be begun anew where its record says all that `sluice` needs for that.
void Turning::pick_up_end(const RunSnapshot* run) {
  if (run == nullptr || run->facts == nullptr) return;
  facts_ = run->facts;
  const analyze::RunInfo& info = facts_->info;
  is_over_ = !run->is_live && run->problem.empty() && !can_turn() &&
             !info.meta_value("model").empty() && !info.meta_value("platform").empty();
  if (!is_over_ || advisor == nullptr) return;
  recorded_knobs_ = advisor->advice(Question::knobs);
  if (recorded_knobs_ == nullptr && !advisor->is_working(Question::knobs))
    advisor->ask(Question::knobs);
}

// A proposal is chosen once, as a whole, as far as it is knobs.
void Turning::take_proposal() {
  if (advisor == nullptr || !can_choose()) return;
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
  if (advisor->is_working(Question::suggest)) return;
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
  asked_at_change_[advisor->ask(question, std::move(settings))] = change_count_;
}

std::shared_ptr<const Advice> Turning::advice(Question question) const {
  return advisor == nullptr || is_outdated(question) ? nullptr : advisor->advice(question);
}

bool Turning::is_outdated(Question question) const {
  const std::shared_ptr<const Advice> last =
      advisor == nullptr ? nullptr : advisor->advice(question);
  if (last == nullptr) return false;
  // The answer's own question counts, and not one that was asked since.
  const auto asked = asked_at_change_.find(last->number);
  return asked == asked_at_change_.end() || asked->second != change_count_;
}

std::string Turning::why_not(const RunSnapshot& run) const {
  if (can_choose()) return {};
  if (!run.is_live)
    return "The run has ended with these values. Its record names no model and platform, so no new "
           "run like it can be begun from here.";
  return control == nullptr ? "The run is being called\u2026" : control->why_not;
}

const std::vector<control::Knob>& Turning::knobs(const RunFacts& facts) const {
  if (control != nullptr && !control->knobs.empty()) return control->knobs;
  return is_over_ && recorded_knobs_ != nullptr && !recorded_knobs_->knobs.empty()
             ? recorded_knobs_->knobs
             : facts.knobs;
}

const control::Knob* Turning::find_knob(const std::string& key) const {
  if (can_turn() || facts_ == nullptr) return control == nullptr ? nullptr : control->knob(key);
  const std::vector<control::Knob>& all = knobs(*facts_);
  const auto found = std::ranges::find(all, key, &control::Knob::key);
  return found == all.end() ? nullptr : &*found;
}

bool Turning::is_knob(const std::string& key) const { return find_knob(key) != nullptr; }

std::vector<std::string> Turning::chosen_without_knob() const {
  std::vector<std::string> settings = pending.settings();
  std::erase_if(settings, [this](const std::string& one) { return is_knob(key_of(one)); });
  return settings;
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
    const control::Knob* knob = find_knob(key_of(setting));
    if (knob != nullptr) {
      choose(*knob, value_of(setting));
    } else if (is_over_ && facts_ != nullptr) {
      pending.choose(key_of(setting), value_of(setting),
                     facts_->info.value_in_force(key_of(setting)));
    } else {
      unknown_count += 1;
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

// A state that exists keeps its subgroups; a new run makes its own.
void Turning::ask_for_proposal() {
  ask(Question::tune,
      is_over_ ? std::vector<std::string>() : std::vector<std::string>{"subgroup_elements"});
}

}  // namespace sluice::gui
