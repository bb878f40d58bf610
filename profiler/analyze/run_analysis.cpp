#include "profiler/analyze/run_analysis.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "profiler/analyze/answers.h"
#include "profiler/analyze/evidence.h"

namespace sluice::analyze {
namespace {

double seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }

class AnalysisOfRun {
 public:
  AnalysisOfRun(rundb::Reader& reader, const RunInfo& info, std::vector<rundb::StepRow> steps)
      : reader_(reader), info_(info), steps_(std::move(steps)) {}

  Result<RunAnalysis> run(const AnalysisOptions& options) {
    result_.step_count = steps_.size();
    look_at_learning();
    ASSIGN_OR_RETURN(result_.evidence.rows, rundb::completeness_of(reader_));
    ASSIGN_OR_RETURN(result_.lateness, lateness_of(reader_, info_));
    if (!steps_.empty()) RETURN_IF_ERROR(look_at_steps(options));
    if (result_.why_unknown.empty()) result_.why_unknown = why_unknown(result_, info_);
    if (!result_.has_spans()) forget_operations();
    if (info_.has_all_ranks()) {
      ASSIGN_OR_RETURN(const std::vector<RankRecord> records, rank_records_in(reader_, info_));
      ASSIGN_OR_RETURN(result_.ranks, analyze_ranks(records, result_.steps));
    }
    ASSIGN_OR_RETURN(result_.answers, answers_of(reader_, info_, steps_, result_));
    if (result_.ranks) result_.answers.push_back(ranks_answer(*result_.ranks));
    find_again(result_, info_, steps_);
    return std::move(result_);
  }

 private:
  void look_at_learning() {
    std::size_t lost = steps_.size();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      result_.skipped_count += steps_[i].skipped ? 1 : 0;
      result_.skipped_at_end = steps_[i].skipped ? result_.skipped_at_end + 1 : 0;
      if (std::isfinite(steps_[i].loss)) lost = i + 1;
    }
    // A run without any has recorded none.
    const bool has_any = std::ranges::any_of(
        steps_, [](const rundb::StepRow& step) { return std::isfinite(step.loss); });
    if (has_any && lost < steps_.size()) result_.lost_loss = steps_[lost].id;
  }

  Status look_at_steps(const AnalysisOptions& options) {
    std::vector<double> durs;
    for (const rundb::StepRow& step : steps_) durs.push_back(seconds(step.dur));
    result_.trend = trend_of(durs, knob_change_indices());
    ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> with_operations,
                     steps_with_operations(reader_, steps_));
    first_with_operations_ = steps_.size() - with_operations.size();
    for (const ChangePoint& change : result_.trend.changes) {
      result_.change_steps.push_back(steps_[change.index].id);
    }
    result_.evidence.devices_have_shares = !info_.is_of_another_program();
    result_.stretch_step_count = steps_.size() - begin_of_stretch();
    const std::vector<std::size_t> chosen = typical_steps(options.steps_max);
    std::vector<double> chosen_durs;
    for (const std::size_t i : chosen) {
      result_.steps.push_back(steps_[i].id);
      RETURN_IF_ERROR(unless_damaged(look_at(steps_[i])));
      chosen_durs.push_back(static_cast<double>(steps_[i].dur));
    }
    result_.dur = static_cast<TimeNs>(median_of(std::move(chosen_durs)));
    finish_means(chosen.size());
    RETURN_IF_ERROR(explain_outliers());
    return find_slowest();
  }

  // Operations that cannot be read leave what the steps alone say.
  Status unless_damaged(const Status& status) {
    if (status.ok() || status.error().code() != ErrorCode::corrupt) return status;
    result_.why_unknown = status.error().message();
    return ok_status();
  }

  // Figures of some of them would be taken for figures of all.
  void forget_operations() {
    result_.share = {};
    result_.links.clear();
    result_.waits = {};
    result_.overlap = {};
    result_.devices.clear();
    if (result_.slowest) result_.slowest->more.clear();
    for (OutlierStep& outlier : result_.outliers) {
      outlier.cause = Cause::other;
      outlier.more_ns = 0;
    }
  }

  // The index of the first step of each change.
  std::vector<std::size_t> knob_change_indices() const {
    std::vector<std::size_t> indices;
    for (const rundb::KnobChangeRow& change : info_.knob_changes) {
      indices.push_back(index_of(change.step_id));
    }
    return indices;
  }

  // The index of a step or, where it is not in the record, of the next step; the number of steps
  // where all are before it.
  std::size_t index_of(std::int64_t step_id) const {
    const auto it = std::ranges::lower_bound(steps_, step_id, {}, &rundb::StepRow::id);
    return static_cast<std::size_t>(it - steps_.begin());
  }

  // The first step of the stretch that is looked at.
  std::size_t begin_of_stretch() const {
    const std::size_t begin =
        result_.trend.changes.empty() ? 0 : result_.trend.changes.back().index;
    return std::max({begin, settled_after_last_change(), first_with_operations_});
  }

  std::vector<std::size_t> typical_steps(std::size_t at_most) const {
    std::vector<std::size_t> candidates;
    for (std::size_t i = begin_of_stretch(); i < steps_.size(); ++i) {
      const bool stands_out = std::ranges::count(result_.trend.outliers, i) > 0;
      if (!stands_out && !steps_[i].skipped) candidates.push_back(i);
    }
    if (candidates.empty()) candidates.push_back(steps_.size() - 1);
    if (candidates.size() <= at_most) return candidates;
    std::vector<std::size_t> chosen;
    for (std::size_t k = 0; k < at_most; ++k) {
      chosen.push_back(candidates[k * (candidates.size() - 1) / (at_most - 1)]);
    }
    return chosen;
  }

  // The first steps of a run, and those after a change of a knob, take memory and fill buffers.
  // Where that would leave none, all count.
  std::size_t settled_after_last_change() const {
    const std::vector<rundb::KnobChangeRow>& changes = info_.knob_changes;
    const std::int64_t last = changes.empty() ? -1 : changes.back().step_id;
    const std::size_t begin = index_of(last) + kSettlingSteps;
    return begin < steps_.size() ? begin : 0;
  }

  Status look_at(const rundb::StepRow& row) {
    ASSIGN_OR_RETURN(const StepData step, load_step(reader_, info_, row));
    add_evidence(step, result_.evidence);
    const StepVerdict verdict = verdict_of(step);
    for (std::size_t c = 0; c < kCauseCount; ++c) {
      cause_ns_[c] += verdict.share[c] * static_cast<double>(row.dur);
      if (verdict.share[c] <= most_[c]) continue;
      most_[c] = verdict.share[c];
      result_.step_of_most[c] = row.id;
    }
    result_.survey.add(step, verdict);
    dur_ns_ += static_cast<double>(row.dur);
    const LinkUse use(step);
    for (const LinkLoad& load : use.loads()) add(load, row.dur);
    result_.waits.add(step);
    const Overlap overlap = overlap_of(step);
    result_.overlap.compute_ns += overlap.compute_ns;
    result_.overlap.transfer_ns += overlap.transfer_ns;
    result_.overlap.both_ns += overlap.both_ns;
    add(device_use(step));
    return ok_status();
  }

  void add(const LinkLoad& load, TimeNs dur) {
    LinkLoad& sum = links_[{load.link_id, load.direction}];
    if (sum.name.empty()) sum = {.link_id = load.link_id, .name = load.name};
    sum.direction = load.direction;
    sum.is_of_drive = load.is_of_drive;
    sum.is_shared = load.is_shared;
    sum.is_between_ranks = load.is_between_ranks;
    sum.bytes_per_s_max = load.bytes_per_s_max;
    sum.bytes += load.bytes;
    sum.busy_ns += load.busy_ns;
    sum.share += load.share * static_cast<double>(dur);
  }

  void add(const std::vector<DeviceUse>& devices) {
    if (result_.devices.empty()) {
      result_.devices = devices;
      return;
    }
    for (std::size_t d = 0; d < devices.size(); ++d) {
      DeviceUse& sum = result_.devices[d];
      sum.read_ns += devices[d].read_ns;
      sum.write_ns += devices[d].write_ns;
      sum.update_ns += devices[d].update_ns;
      sum.busy_ns += devices[d].busy_ns;
      sum.read_bytes += devices[d].read_bytes;
      sum.write_bytes += devices[d].write_bytes;
    }
  }

  void finish_means(std::size_t count) {
    for (auto& [key, load] : links_) {
      if (load.busy_ns > 0) {
        load.bytes_per_s = static_cast<double>(load.bytes) / seconds(load.busy_ns);
      }
      load.share = dur_ns_ > 0 ? load.share / dur_ns_ : 0;
      load.bytes /= static_cast<std::int64_t>(count);
      load.busy_ns /= static_cast<TimeNs>(count);
      result_.links.push_back(load);
    }
    for (std::size_t c = 0; c < kCauseCount && dur_ns_ > 0; ++c) {
      result_.share[c] = cause_ns_[c] / dur_ns_;
    }
  }

  Status explain_outliers() {
    std::vector<std::size_t> worst = result_.trend.outliers;
    std::ranges::sort(worst, std::greater<>(), [this](std::size_t i) { return steps_[i].dur; });
    // Steps before the stretch had other settings: what they took more is not to be explained by
    // comparing them with today's.
    std::erase_if(worst, [begin = begin_of_stretch()](std::size_t i) { return i < begin; });
    result_.outlier_count = worst.size();
    if (worst.size() > kOutliersMax) worst.resize(kOutliersMax);
    for (const std::size_t i : worst) {
      OutlierStep outlier{.step = steps_[i].id, .dur = steps_[i].dur, .typical_dur = result_.dur};
      RETURN_IF_ERROR(unless_damaged(explain(steps_[i], outlier)));
      result_.outliers.push_back(outlier);
    }
    return ok_status();
  }

  Status explain(const rundb::StepRow& row, OutlierStep& outlier) {
    ASSIGN_OR_RETURN(const StepData step, load_step(reader_, info_, row));
    const StepVerdict verdict = verdict_of(step);
    double most = 0;
    for (std::size_t c = 0; c < kCauseCount; ++c) {
      const double more = verdict.share[c] * static_cast<double>(row.dur) -
                          result_.share[c] * static_cast<double>(result_.dur);
      if (more <= most) continue;
      most = more;
      outlier.cause = static_cast<Cause>(c);
      outlier.more_ns = static_cast<TimeNs>(more);
    }
    return ok_status();
  }

  // Steps that take memory and fill buffers, or are in the record without their operations, are
  // beside nothing.
  std::vector<bool> unsettled_steps(const std::vector<std::size_t>& changes) const {
    std::vector<bool> unsettled(steps_.size(), false);
    const auto mark = [&unsettled](std::size_t begin, std::size_t count) {
      for (std::size_t i = begin; i < std::min(begin + count, unsettled.size()); ++i)
        unsettled[i] = true;
    };
    mark(0, std::max(kSettlingSteps, first_with_operations_));
    for (const std::size_t change : changes) mark(change, kSettlingSteps);
    return unsettled;
  }

  Status find_slowest() {
    std::vector<std::size_t> borders = knob_change_indices();
    const std::vector<bool> unsettled = unsettled_steps(borders);
    for (const ChangePoint& change : result_.trend.changes) borders.push_back(change.index);
    std::ranges::sort(borders);
    const std::optional<SlowestPlace> place = slowest_of(steps_, borders, unsettled);
    if (!place) return ok_status();
    const rundb::StepRow& slow = steps_[place->slowest];
    const rundb::StepRow& typical = steps_[place->typical];
    result_.slowest = SlowestStep{
        .step = slow.id,
        .dur = slow.dur,
        .typical_step = typical.id,
        .typical_dur = typical.dur,
        .is_beyond_noise = std::ranges::count(result_.trend.outliers, place->slowest) > 0};
    return unless_damaged(compare_slowest(slow, typical));
  }

  Status compare_slowest(const rundb::StepRow& slow, const rundb::StepRow& typical) {
    ASSIGN_OR_RETURN(const StepData slow_step, load_step(reader_, info_, slow));
    ASSIGN_OR_RETURN(const StepData typical_step, load_step(reader_, info_, typical));
    result_.slowest->more = more_than(verdict_of(slow_step), verdict_of(typical_step));
    return ok_status();
  }

  rundb::Reader& reader_;
  const RunInfo& info_;
  const std::vector<rundb::StepRow> steps_;
  std::size_t first_with_operations_ = 0;
  RunAnalysis result_;
  std::array<double, kCauseCount> cause_ns_{};
  std::array<double, kCauseCount> most_{};  // share in one step
  double dur_ns_ = 0;
  std::map<std::pair<std::int64_t, rundb::Direction>, LinkLoad> links_;
};

}  // namespace

void find_again(RunAnalysis& analysis, const RunInfo& info,
                const std::vector<rundb::StepRow>& steps) {
  Found found = find_bottlenecks(analysis, analysis.survey, info, steps);
  std::erase_if(analysis.answers, [](const Answer& answer) { return answer.is_of_finding; });
  std::ranges::move(found.answers, std::back_inserter(analysis.answers));
  analysis.findings = std::move(found.findings);
}

Result<RunAnalysis> analyze_run(rundb::Reader& reader, const RunInfo& info,
                                const AnalysisOptions& options) {
  ASSIGN_OR_RETURN(std::vector<rundb::StepRow> steps, reader.steps());
  return AnalysisOfRun(reader, info, std::move(steps)).run(options);
}

}  // namespace sluice::analyze
