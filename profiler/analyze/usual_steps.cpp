#include "profiler/analyze/usual_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "profiler/analyze/trend.h"

namespace sluice::analyze {
namespace {

// Fewer steps have no median to stand beside.
constexpr std::size_t kFewestUsual = 3;

class ChoiceOfUsual {
 public:
  ChoiceOfUsual(const RunInfo& info, const std::vector<rundb::StepRow>& steps,
                std::size_t first_with_operations, const std::vector<std::size_t>& knobs,
                const Trend& trend, std::size_t first, std::size_t last)
      : info_(info),
        steps_(steps),
        first_with_operations_(first_with_operations),
        knobs_(knobs),
        trend_(trend),
        first_(first),
        last_(last) {}

  UsualSteps choose() {
    UsualSteps usual;
    usual.noise_ns = static_cast<TimeNs>(trend_.noise);
    usual.stands_out = first_ == last_ && std::ranges::count(trend_.outliers, first_) > 0;
    std::vector<std::size_t> borders = knobs_;
    for (const ChangePoint& change : trend_.changes) borders.push_back(change.index);
    std::ranges::sort(borders);
    usual.indices = settled_in(stretch_around(borders));
    if (usual.indices.size() < kFewestUsual) usual.indices = settled_in(stretch_around(knobs_));
    if (usual.indices.size() < kFewestUsual) choose_elsewhere(usual);
    add_notes(usual);
    if (!usual.why_none.empty()) return usual;
    std::vector<double> durs;
    for (const std::size_t i : usual.indices) durs.push_back(static_cast<double>(steps_[i].dur));
    usual.dur = static_cast<TimeNs>(median_of(std::move(durs)));
    return usual;
  }

 private:
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // Around the last chosen step.
  Stretch stretch_around(const std::vector<std::size_t>& borders) const {
    Stretch stretch{0, steps_.size()};
    for (const std::size_t border : borders) {
      if (border <= last_) stretch.begin = std::max(stretch.begin, border);
      if (border > last_) stretch.end = std::min(stretch.end, border);
    }
    return stretch;
  }

  bool is_settling(std::size_t index) const {
    if (index < kSettlingSteps) return true;
    return std::ranges::any_of(knobs_, [index](std::size_t change) {
      return index >= change && index < change + kSettlingSteps;
    });
  }

  std::vector<std::size_t> settled_in(Stretch stretch) const {
    std::vector<std::size_t> settled;
    for (std::size_t i = std::max(stretch.begin, first_with_operations_); i < stretch.end; ++i) {
      const bool is_chosen = i >= first_ && i <= last_;
      const bool stands_out = std::ranges::binary_search(trend_.outliers, i);
      if (!is_chosen && !stands_out && !steps_[i].skipped && !is_settling(i)) settled.push_back(i);
    }
    return settled;
  }

  // The nearest stretch between knobs that has enough: the settings differ.
  void choose_elsewhere(UsualSteps& usual) {
    std::vector<std::size_t> ends = knobs_;
    ends.push_back(steps_.size());
    std::size_t begin = 0;
    std::size_t nearest = std::numeric_limits<std::size_t>::max();
    Stretch chosen;
    for (const std::size_t end : ends) {
      const std::size_t away = end <= first_ ? first_ - end : begin > last_ ? begin - last_ : 0;
      std::vector<std::size_t> settled = settled_in({begin, end});
      if (away < nearest && settled.size() >= kFewestUsual) {
        nearest = away;
        chosen = {begin, end};
        usual.indices = std::move(settled);
      }
      begin = end;
    }
    if (usual.indices.size() < kFewestUsual) {
      usual.indices.clear();
      usual.why_none = "fewer than 3 other settled steps have operations in the record";
      return;
    }
    usual.notes.push_back(
        fmt::format("Fewer than 3 other steps have the same settings, so it stands beside steps "
                    "{} to {}, which have others.",
                    steps_[chosen.begin].id + 1, steps_[chosen.end - 1].id + 1));
  }

  void add_notes(UsualSteps& usual) const {
    const std::string it = first_ == last_ ? "It" : "The range";
    if (first_ < kSettlingSteps) {
      usual.notes.push_back(
          fmt::format("{} {} the first steps of the record, which take memory and fill buffers.",
                      it, first_ == last_ ? "is one of" : "has"));
    }
    for (const rundb::KnobChangeRow& change : info_.knob_changes) {
      const std::int64_t settled_id = change.step_id + static_cast<std::int64_t>(kSettlingSteps);
      const bool is_before = change.step_id <= steps_[first_].id && steps_[first_].id < settled_id;
      const bool is_within =
          change.step_id > steps_[first_].id && change.step_id <= steps_[last_].id;
      if (!is_before && !is_within) continue;
      usual.notes.push_back(
          fmt::format("{} {} -> {} from step {} on: the first steps after a "
                      "change take memory and fill buffers.",
                      change.knob, change.old_value, change.new_value, change.step_id + 1));
    }
    if (first_ == last_ && steps_[first_].skipped) {
      usual.notes.push_back("It was skipped for overflow: nothing was updated.");
    }
  }

  const RunInfo& info_;
  const std::vector<rundb::StepRow>& steps_;
  const std::size_t first_with_operations_;
  const std::vector<std::size_t>& knobs_;
  const Trend& trend_;
  const std::size_t first_;
  const std::size_t last_;
};

}  // namespace

UsualStepsOfRun::UsualStepsOfRun(const RunInfo& info, const std::vector<rundb::StepRow>& steps,
                                 std::size_t first_with_operations)
    : info_(info), steps_(steps), first_with_operations_(first_with_operations) {
  for (const rundb::KnobChangeRow& change : info.knob_changes) {
    const auto it = std::ranges::lower_bound(steps, change.step_id, {}, &rundb::StepRow::id);
    const auto index = static_cast<std::size_t>(it - steps.begin());
    if (index > 0 && index < steps.size()) knobs_.push_back(index);
  }
  knobs_.erase(std::ranges::unique(knobs_).begin(), knobs_.end());
  std::vector<double> durs;
  for (const rundb::StepRow& step : steps) durs.push_back(static_cast<double>(step.dur));
  trend_ = trend_of(durs, knobs_);
}

UsualSteps UsualStepsOfRun::beside(std::size_t first, std::size_t last) const {
  return ChoiceOfUsual(info_, steps_, first_with_operations_, knobs_, trend_, first, last).choose();
}

std::vector<std::size_t> evenly_chosen(const std::vector<std::size_t>& indices, std::size_t count) {
  if (indices.size() <= count) return indices;
  std::vector<std::size_t> chosen;
  for (std::size_t k = 0; k < count; ++k) {
    chosen.push_back(indices[k * (indices.size() - 1) / (count - 1)]);
  }
  return chosen;
}

}  // namespace sluice::analyze
