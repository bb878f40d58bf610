#include "gui/views/consultation.h"

#include "gui/data/run_snapshot.h"
#include "gui/data/verdict.h"

namespace sluice::gui {
namespace {

// Between two questions about a live run, which each question slows.
constexpr double kAdviceSeconds = 30;

// Steps with a change before a prediction builds on them (profiler/analyze/run_analysis.cpp leaves
// the first two out).
constexpr std::int64_t kSettling = 4;

}  // namespace

void Consultation::open(std::unique_ptr<Advisor> advisor) {
  *this = Consultation();
  advisor_ = std::move(advisor);
}

void Consultation::pick_up(const RunSnapshot* run) {
  take_suggestions();
  if (run == nullptr || run->facts == nullptr || run->steps == nullptr) return;
  const std::vector<rundb::KnobChangeRow>& changes = run->facts->info.knob_changes;
  change_count_ = changes.size();
  awaits_steps_ =
      run->is_live && !changes.empty() &&
      (run->steps->empty() || run->steps->back().id < changes.back().step_id + kSettling);
}

// A proposal is chosen once, as a whole.
std::optional<std::vector<std::string>> Consultation::take_proposal() {
  if (advisor_ == nullptr) return std::nullopt;
  const std::shared_ptr<const Advice> advice = advisor_->advice(Question::tune);
  if (advice == nullptr || advice->number == proposal_taken_) return std::nullopt;
  proposal_taken_ = advice->number;
  const std::vector<analyze::PredictedChange>& proposed = advice->predicted.each;
  if (proposed.empty()) return std::nullopt;
  return proposed.front().settings;
}

// A change that is shown stays in the list until it gains clearly less.
void Consultation::take_suggestions() {
  if (advisor_ == nullptr) return;
  const std::shared_ptr<const Advice> advice = advisor_->advice(Question::suggest);
  if (advice == nullptr || advice->number == suggestions_taken_) return;
  suggestions_taken_ = advice->number;
  next_ = analyze::turn_next(advice->predicted, next_.shown());
}

void Consultation::ask_for_suggestions(const Verdict& verdict, double now_seconds) {
  if (advisor_ == nullptr || !verdict.why_empty.empty()) return;
  if (awaits_steps_ || now_seconds - advised_at_ < kAdviceSeconds) return;
  if (advisor_->is_working(Question::suggest)) return;
  // The question is repeated when other knobs are in force, when there are twice as many steps, and
  // when there were too few for an answer.
  const std::size_t steps = verdict.analysis.step_count;
  const std::shared_ptr<const Advice> last = advisor_->advice(Question::suggest);
  const bool had_problem = last != nullptr && !last->problem.empty();
  if (advised_steps_ > 0 && !is_outdated(Question::suggest) && steps < 2 * advised_steps_ &&
      !(had_problem && steps > advised_steps_))
    return;
  advised_steps_ = steps;
  advised_at_ = now_seconds;
  ask(Question::suggest);
}

void Consultation::ask(Question question, std::vector<std::string> settings) {
  if (advisor_ == nullptr) return;
  asked_at_change_[advisor_->ask(question, std::move(settings))] = change_count_;
}

std::shared_ptr<const Advice> Consultation::advice(Question question) const {
  return advisor_ == nullptr || is_outdated(question) ? nullptr : advisor_->advice(question);
}

bool Consultation::is_outdated(Question question) const {
  const std::shared_ptr<const Advice> last =
      advisor_ == nullptr ? nullptr : advisor_->advice(question);
  if (last == nullptr) return false;
  // The answer's own question counts, and not one that was asked since.
  const auto asked = asked_at_change_.find(last->number);
  return asked == asked_at_change_.end() || asked->second != change_count_;
}

}  // namespace sluice::gui
