#include "profiler/watch/watcher.h"

#include <cmath>
#include <utility>

#include "base/figure_text.h"
#include "base/units.h"
#include "profiler/analyze/trend.h"

namespace sluice::watch {
namespace {

std::string figure_text(const Condition& condition, double value) {
  return condition.is_time ? format_seconds(value) : fmt::format("{:.6g}", value);
}

// The words of a step that meets the condition; none: it does not, or nobody can tell.
std::optional<std::string> met_by(const Condition& condition, const RunFollower& run,
                                  std::size_t index) {
  const double value = condition.figure(run.steps()[index]);
  if (condition.sign == '=') {
    if (std::isfinite(value)) return std::nullopt;
    return fmt::format("{} is no finite number",
                       condition.text.substr(0, condition.text.find('=')));
  }
  if (std::isnan(value)) return std::nullopt;
  const bool is_above = condition.sign == '>';
  const std::string text = figure_text(condition, value);
  if (!condition.is_percent) {
    if (is_above ? value <= condition.bound : value >= condition.bound) return std::nullopt;
    return text;
  }
  if (run.steps()[index].skipped) return std::nullopt;  // it looks fast
  const std::optional<Before> before = run.before(index, condition.figure);
  if (!before || before->median == 0) return std::nullopt;
  const double change = value / before->median - 1;
  const bool is_noise = std::abs(value - before->median) <= analyze::kChangeNoise * before->noise;
  if (is_noise || (is_above ? change <= condition.bound : change >= condition.bound))
    return std::nullopt;
  return fmt::format("{}, {:+.1f} % of the median {} of steps {} to {}", text, 100 * change,
                     figure_text(condition, before->median), before->first_step + 1,
                     before->last_step + 1);
}

TimeNs end_of(const rundb::StepRow& step) { return step.ts + step.dur; }

}  // namespace

Watcher::Watcher(std::vector<Condition> conditions) {
  for (Condition& condition : conditions) watched_.push_back({.condition = std::move(condition)});
}

std::vector<Event> Watcher::judge(RunFollower& run, TimeNs now_ts) {
  std::vector<Event> events;
  for (std::size_t i = run.first_new(); i < run.steps().size(); ++i) {
    for (Watched& watched : watched_) {
      if (watched.condition.subject == Subject::step) judge_step(watched, run, i, events);
      if (watched.condition.subject == Subject::no_step)
        judge_gap(watched, run, i, end_of(run.steps()[i]), events);
    }
  }
  for (Watched& watched : watched_) {
    if (watched.condition.subject == Subject::lost_records) judge_losses(watched, run, events);
    const bool has_own_clock = run.info().meta_value("clock") == "simulated";
    if (watched.condition.subject == Subject::no_step && run.is_live() && !has_own_clock)
      judge_gap(watched, run, run.steps().size(), now_ts, events);
  }
  return events;
}

void Watcher::judge_step(Watched& watched, RunFollower& run, std::size_t index,
                         std::vector<Event>& events) {
  const std::optional<std::string> words = met_by(watched.condition, run, index);
  const bool held = std::exchange(watched.holds, words.has_value());
  if (!words || held) return;
  const rundb::StepRow& step = run.steps()[index];
  events.push_back({.condition = watched.condition.text,
                    .time = run.time_text(end_of(step)),
                    .step = step.id + 1,
                    .value = watched.condition.figure(step),
                    .words = *words});
}

// The time from the end of the step before `index` until `until_ts`.
void Watcher::judge_gap(Watched& watched, RunFollower& run, std::size_t index, TimeNs until_ts,
                        std::vector<Event>& events) {
  const rundb::StepRow* const before = index == 0 ? nullptr : &run.steps()[index - 1];
  TimeNs from_ts = before == nullptr ? run.stretch_begin() : end_of(*before);
  // Between two stretches nobody recorded.
  const bool is_over_a_pause = from_ts < run.stretch_begin() && until_ts >= run.stretch_begin();
  if (is_over_a_pause) from_ts = run.stretch_begin();
  const std::int64_t after = before == nullptr ? -1 : before->id;
  const double seconds = static_cast<double>(until_ts - from_ts) / 1e9;
  if (from_ts == 0 || seconds <= watched.condition.bound || watched.stalled_after == after) return;
  watched.stalled_after = after;
  const std::string where = before == nullptr ? std::string("the begin of the recording")
                                              : fmt::format("the end of step {}", after + 1);
  events.push_back({.condition = watched.condition.text,
                    .time = run.time_text(until_ts),
                    .step = after + 1,
                    .value = seconds,
                    .words = fmt::format("{} since {}", format_seconds(seconds), where)});
}

void Watcher::judge_losses(Watched& watched, RunFollower& run, std::vector<Event>& events) {
  const auto lost = static_cast<double>(run.lost_records());
  const bool held = std::exchange(watched.holds, lost > watched.condition.bound);
  if (!watched.holds || held) return;
  const rundb::StepRow* const last = run.steps().empty() ? nullptr : &run.steps().back();
  events.push_back({.condition = watched.condition.text,
                    .time = run.time_text(last == nullptr ? run.stretch_begin() : end_of(*last)),
                    .step = last == nullptr ? 0 : last->id + 1,
                    .value = lost,
                    .words = format_whole(run.lost_records()) + " lost while recording"});
}

}  // namespace sluice::watch
