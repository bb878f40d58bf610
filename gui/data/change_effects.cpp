#include "gui/data/change_effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "gui/data/span_scan.h"
#include "profiler/analyze/trend.h"

namespace sluice::gui {
namespace {

using Series = std::map<std::string, std::vector<double>>;  // by figure, a value a step

constexpr std::array<std::pair<const char*, const char*>, 6> kFigures = {{{"step_time", "s"},
                                                                          {"forward", "s"},
                                                                          {"backward", "s"},
                                                                          {"update", "s"},
                                                                          {"shared_link", "B"},
                                                                          {"loss", ""}}};

double seconds(TimeNs dur_ns) { return static_cast<double>(dur_ns) / 1e9; }

Series series_of(std::span<const rundb::StepRow> steps, std::span<const PhaseRow> phases) {
  Series series;
  for (const rundb::StepRow& step : steps) {
    series["step_time"].push_back(seconds(step.dur));
    if (std::isfinite(step.loss)) series["loss"].push_back(step.loss);
    const auto phase = std::ranges::lower_bound(phases, step.id, {}, &PhaseRow::step);
    if (phase == phases.end() || phase->step != step.id) continue;
    series["forward"].push_back(seconds(phase->dur_ns[0]));
    series["backward"].push_back(seconds(phase->dur_ns[1]));
    series["update"].push_back(seconds(phase->dur_ns[2]));
    series["shared_link"].push_back(static_cast<double>(phase->shared_link_bytes));
  }
  return series;
}

// The steps from `first` up to, without, `end`.
std::span<const rundb::StepRow> between(std::span<const rundb::StepRow> steps, std::int64_t first,
                                        std::int64_t end) {
  const auto begin = std::ranges::lower_bound(steps, first, {}, &rundb::StepRow::id);
  const auto stop = std::ranges::lower_bound(begin, steps.end(), end, {}, &rundb::StepRow::id);
  return {begin, stop};
}

void compare(ChangeEffect& effect, const Series& before, const Series& after) {
  for (const auto& [key, unit] : kFigures) {
    const auto old_values = before.find(key);
    const auto new_values = after.find(key);
    if (old_values == before.end() || new_values == after.end()) continue;
    effect.figures.push_back(
        {.key = key,
         .unit = unit,
         .before = analyze::median_of(old_values->second),
         .after = analyze::median_of(new_values->second),
         .noise = analyze::noise_of_difference(old_values->second, new_values->second)});
  }
}

void measure(ChangeEffect& effect, std::int64_t previous_step, std::int64_t next_step,
             std::span<const rundb::StepRow> steps, std::span<const PhaseRow> phases) {
  std::span<const rundb::StepRow> before = between(steps, previous_step, effect.step);
  std::span<const rundb::StepRow> after = between(steps, effect.step + 1, next_step);
  before = before.last(std::min(kEffectSteps, before.size()));
  after = after.first(std::min(kEffectSteps, after.size()));
  effect.before_count = before.size();
  effect.after_count = after.size();
  effect.is_settled =
      after.size() == kEffectSteps || next_step != std::numeric_limits<std::int64_t>::max();
  if (before.empty()) {
    effect.why_empty = "There is no step before it to compare with.";
  } else if (after.empty()) {
    effect.why_empty = effect.is_settled
                           ? "The next change came before a whole step ran with it."
                           : "No whole step has ended with it yet; the one it began in is not "
                             "counted.";
  } else {
    compare(effect, series_of(before, phases), series_of(after, phases));
  }
}

}  // namespace

bool FigureEffect::is_more_than_noise() const { return std::abs(difference()) > noise; }

const FigureEffect* ChangeEffect::figure(const std::string& key) const {
  const auto found = std::ranges::find(figures, key, &FigureEffect::key);
  return found == figures.end() ? nullptr : &*found;
}

std::vector<ChangeEffect> change_effects(std::span<const rundb::KnobChangeRow> changes,
                                         std::span<const rundb::StepRow> steps,
                                         std::span<const PhaseRow> phases) {
  std::vector<ChangeEffect> effects;
  for (const rundb::KnobChangeRow& change : changes) {
    if (effects.empty() || effects.back().step != change.step_id)
      effects.emplace_back().step = change.step_id;
    effects.back().changes.push_back(change);
  }
  const std::int64_t first_step = steps.empty() ? 0 : steps.front().id;
  std::erase_if(effects, [](const ChangeEffect& effect) { return effect.step == 0; });
  for (std::size_t e = 0; e < effects.size(); ++e) {
    measure(effects[e], e == 0 ? first_step : effects[e - 1].step,
            e + 1 < effects.size() ? effects[e + 1].step : std::numeric_limits<std::int64_t>::max(),
            steps, phases);
  }
  return effects;
}

// Phases share out the time of a step (storage/rundb/sql/views.sql): forward counts from where the
// updates of the step before have ended, so what these no longer take may appear there.
std::string phase_note(const ChangeEffect& effect) {
  const FigureEffect* time = effect.figure("step_time");
  const auto has_grown = [&effect](const char* key) {
    const FigureEffect* figure = effect.figure(key);
    return figure != nullptr && figure->difference() > 0 && figure->is_more_than_noise();
  };
  if (time == nullptr || time->difference() >= 0) return {};
  const FigureEffect* update = effect.figure("update");
  if (has_grown("forward") && update != nullptr && update->difference() < 0) {
    return "Forward starts counting when the previous updates end. They got shorter, so it looks "
           "longer; the step did not.";
  }
  for (const char* phase : {"forward", "backward", "update"}) {
    if (!has_grown(phase)) continue;
    return fmt::format(
        "{} takes more of a step that is no longer: phases overlap, so one can grow while the "
        "whole takes less.",
        phase);
  }
  return {};
}

std::string changes_text(std::span<const rundb::KnobChangeRow> changes) {
  std::string text;
  for (const rundb::KnobChangeRow& change : changes) {
    if (!text.empty()) text += ", ";
    text += change.knob + " " + change.old_value + " \u2192 " + change.new_value;
  }
  return text;
}

}  // namespace sluice::gui
