#pragma once
// The effect of a change of knobs: figures of the steps before it and after it.
//
// The rule is that of the run's own watch (core/control/effect_watch.h): the median of up to eight
// steps before the change, none of them before the change before it; the step in which it begins
// is not counted; then the median of up to eight steps, none of them of the next change. Knobs that
// change in one step are one change.
//
// Thread contract: free functions on plain data.

#include <span>
#include <string>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::gui {

struct PhaseRow;

struct FigureEffect {
  std::string key;   // "step_time"; as in --revert-if and `sluice compare`
  std::string unit;  // "s", "B", ""
  double before = 0;
  double after = 0;
  double noise = 0;  // of the difference (profiler/analyze/trend.h)
  double difference() const { return after - before; }
  double change() const { return before == 0 ? 0 : after / before - 1; }
  bool is_more_than_noise() const;
};

struct ChangeEffect {
  std::int64_t step = 0;                      // the first with the new values
  std::vector<rundb::KnobChangeRow> changes;  // of that step
  std::vector<FigureEffect> figures;          // those known on both sides
  std::size_t before_count = 0;               // steps that the medians are of
  std::size_t after_count = 0;
  bool is_settled = false;  // no further step will count: there are eight, or the next change came
  std::string why_empty;    // not empty: why there are no figures

  const FigureEffect* figure(const std::string& key) const;  // null: not known
};
inline constexpr std::size_t kEffectSteps = 8;

// `changes` in order of their steps, `steps` and `phases` by step. What the run's settings planned
// for its first step changed nothing that was measured, and has no effect here.
std::vector<ChangeEffect> change_effects(std::span<const rundb::KnobChangeRow> changes,
                                         std::span<const rundb::StepRow> steps,
                                         std::span<const PhaseRow> phases);

// The reason why a phase grew although a step takes no longer; empty where none did.
std::string phase_note(const ChangeEffect& effect);

// "buffers 3 \u2192 6, device_map even \u2192 3,1,1,1"
std::string changes_text(std::span<const rundb::KnobChangeRow> changes);

}  // namespace sluice::gui
