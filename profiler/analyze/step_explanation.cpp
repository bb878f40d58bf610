#include "profiler/analyze/step_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/figure_text.h"
#include "profiler/analyze/evidence.h"
#include "profiler/analyze/host_counters.h"
#include "profiler/analyze/rank_analysis.h"
#include "profiler/analyze/run_analysis.h"
#include "profiler/analyze/step_reasons.h"
#include "profiler/analyze/trend.h"
#include "profiler/analyze/usual_steps.h"
#include "storage/rundb/span_reader.h"

namespace sluice::analyze {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(ReasonKind::count_)> kReasonNames =
    {"slower device",   "slower link",       "slower operation", "more bytes",
     "more operations", "unusual operation", "late rank",        "waited",
     "nothing running", "late operations",   "recorder cost",    "less hidden"};

// A cause within the noise has a reason all the same from this part of a usual step on: the largest
// difference is named always.
constexpr double kNamedWithinNoise = 0.1;
// A gap before a step is worth a word from this part of a usual step on.
constexpr double kGapShare = 0.05;
constexpr std::size_t kRankStepsMax = 3;
constexpr std::size_t kNamesOfGap = 3;

TimeNs whole_ns(double ns) { return static_cast<TimeNs>(std::llround(ns)); }

// By step, so that several explanations of one run look at a usual step once.
struct UsualProfiles {
  std::map<std::size_t, StepProfile> by_index;
  NamesOfOperations names;
};

class Explaining {
 public:
  Explaining(rundb::Reader& reader, const RunInfo& info, const std::vector<rundb::StepRow>& steps,
             const std::vector<RankRecord>& ranks, const UsualStepsOfRun& usual_steps,
             UsualProfiles& profiles)
      : reader_(reader),
        info_(info),
        steps_(steps),
        ranks_(ranks),
        usual_steps_(usual_steps),
        profiles_(profiles) {}

  Result<StepExplanation> explain(StepRange chosen) {
    RETURN_IF_ERROR(find_chosen(chosen));
    const UsualSteps usual = usual_steps_.beside(chosen_.front(), chosen_.back());
    take_times(usual);
    const Status looked = look_at_operations(usual);
    if (!looked.ok() && looked.error().code() != ErrorCode::corrupt) return looked.error();
    if (!looked.ok()) forget(looked.error().message());
    RETURN_IF_ERROR(note_gap());
    return std::move(result_);
  }

 private:
  const rundb::StepRow& row(std::size_t index) const { return steps_[index]; }

  Status find_chosen(StepRange range) {
    if (steps_.empty()) {
      return make_error(ErrorCode::config,
                        "no step of this run has ended, so none can be explained");
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (row(i).id >= range.first && row(i).id <= range.last) chosen_.push_back(i);
    }
    const bool has_ends = !chosen_.empty() && row(chosen_.front()).id == range.first &&
                          row(chosen_.back()).id == range.last;
    if (has_ends) return ok_status();
    const std::string asked =
        range.first == range.last
            ? fmt::format("there is no step {}", range.first + 1)
            : fmt::format("steps {} to {} are not all there", range.first + 1, range.last + 1);
    return make_error(ErrorCode::config, "{}: the record has {} to {}", asked,
                      steps_.front().id + 1, steps_.back().id + 1);
  }

  void take_times(const UsualSteps& usual) {
    result_.steps = {row(chosen_.front()).id, row(chosen_.back()).id};
    result_.step_count = chosen_.size();
    double sum = 0;
    for (const std::size_t i : chosen_) sum += static_cast<double>(row(i).dur);
    result_.dur = whole_ns(sum / static_cast<double>(chosen_.size()));
    result_.usual_dur = usual.dur;
    result_.usual_count = usual.indices.size();
    result_.noise_ns = usual.noise_ns;
    result_.why_no_usual = usual.why_none;
    result_.notes = usual.notes;
    if (!result_.has_usual()) return;
    const double more = static_cast<double>(std::abs(result_.more_ns()));
    const double share = more / std::max(1.0, static_cast<double>(usual.dur));
    // One step is judged as those that stand out of a run are; a mean of many scatters less.
    const bool is_one = chosen_.size() == 1;
    const double noise =
        static_cast<double>(usual.noise_ns) / std::sqrt(static_cast<double>(chosen_.size()));
    result_.is_beyond_noise =
        usual.stands_out || (more > (is_one ? kOutlierNoise : kChangeNoise) * noise &&
                             share > (is_one ? kOutlierShare : kChangeShare));
  }

  void forget(const std::string& why) {
    result_.causes.clear();
    result_.usual_steps.clear();
    result_.why_unknown = why;
  }

  Status look_at_operations(const UsualSteps& usual) {
    std::vector<StepProfile> here, beside;
    for (const std::size_t i : evenly_chosen(chosen_, kChosenStepsMax)) {
      ASSIGN_OR_RETURN(const StepData step, load_step(reader_, info_, row(i)));
      const StepVerdict verdict = verdict_of(step);
      here.push_back(profile_of(step, verdict, found_.names));
      std::ranges::move(pieces_of(step, verdict), std::back_inserter(found_.pieces));
      std::ranges::move(awaited_in(step, verdict), std::back_inserter(found_.awaited));
      add_longest(step, kReasonSpansMax, found_.longest);
      add_evidence(step, evidence_.evidence);
    }
    if (std::ranges::all_of(here, [](const auto& step) { return step.operation_count == 0; })) {
      forget(why_no_operations());
      return ok_status();
    }
    for (const std::size_t i : evenly_chosen(usual.indices, kUsualStepsMax)) {
      auto known = profiles_.by_index.find(i);
      if (known == profiles_.by_index.end()) {
        ASSIGN_OR_RETURN(const StepData step, load_step(reader_, info_, row(i)));
        known = profiles_.by_index.emplace(i, profile_of(step, verdict_of(step), profiles_.names))
                    .first;
      }
      beside.push_back(known->second);
      result_.usual_steps.push_back(row(i).id);
    }
    found_.names.insert(profiles_.names.begin(), profiles_.names.end());
    found_.info = &info_;
    found_.step = result_.steps.first;
    found_.here = mean_of(here);
    found_.usual = median_profile_of(beside);
    take_causes(beside);
    return find_reasons();
  }

  std::string why_no_operations() {
    evidence_.step_count = steps_.size();
    const std::string why = why_unknown(evidence_, info_);
    return why.empty() ? "no operation of it is in the record" : why;
  }

  void take_causes(const std::vector<StepProfile>& beside) {
    for (std::size_t c = 0; c < kCauseCount; ++c) {
      ExplainedCause cause{.cause = static_cast<Cause>(c),
                           .ns = whole_ns(found_.here.cause_ns[c]),
                           .usual_ns = whole_ns(found_.usual.cause_ns[c]),
                           .reason = std::nullopt};
      if (cause.ns == 0 && cause.usual_ns == 0) continue;
      std::vector<double> values;
      for (const StepProfile& step : beside) values.push_back(step.cause_ns[c]);
      const double noise = values.empty() ? 0 : noise_of(values, median_of(values)) * kCauseNoise;
      const double least =
          std::max(noise / std::sqrt(static_cast<double>(chosen_.size())),
                   kWorthNamingShare * static_cast<double>(std::max(result_.usual_dur, TimeNs{1})));
      cause.is_within_noise =
          result_.has_usual() && static_cast<double>(std::abs(cause.more_ns())) <= least;
      result_.causes.push_back(std::move(cause));
    }
    std::ranges::stable_sort(result_.causes, std::greater<>(),
                             [](const auto& cause) { return std::abs(cause.more_ns()); });
  }

  Status find_reasons() {
    if (!result_.has_usual()) return ok_status();
    ASSIGN_OR_RETURN(found_.lateness, reader_.lateness());
    std::size_t count = 0;
    for (ExplainedCause& cause : result_.causes) {
      const double share = static_cast<double>(cause.more_ns()) /
                           static_cast<double>(std::max(result_.usual_dur, TimeNs{1}));
      const bool is_worth_it = cause.is_within_noise ? share >= kNamedWithinNoise : share > 0;
      if (!is_worth_it || count == kReasonsMax) continue;
      if (cause.cause == Cause::ranks) {
        ASSIGN_OR_RETURN(found_.late_rank, late_rank(cause.more_ns()));
      }
      cause.reason = reason_of(found_, cause.cause);
      if (cause.reason->kind == ReasonKind::nothing_running)
        RETURN_IF_ERROR(add_counters(*cause.reason));
      ++count;
    }
    return ok_status();
  }

  Status add_counters(StepReason& reason) {
    const auto first = std::ranges::find(steps_, result_.usual_steps.front(), &rundb::StepRow::id);
    const rundb::StepRow& last = row(chosen_.back());
    ASSIGN_OR_RETURN(
        const std::string counters,
        host_counters_beside(reader_, info_, {row(chosen_.front()).ts, last.ts + last.dur},
                             {first->ts, first->ts + first->dur}));
    if (counters.empty()) return ok_status();
    reason.words.pop_back();
    reason.words += fmt::format("; meanwhile {}.", counters);
    return ok_status();
  }

  Result<std::optional<LateRank>> late_rank(TimeNs more_ns) {
    if (!info_.has_all_ranks()) return late_rank_of(ranks_, more_ns);
    ASSIGN_OR_RETURN(const std::vector<RankRecord> records, rank_records_in(reader_, info_));
    return late_rank_of(records, more_ns);
  }

  // Whom the others waited for longer than usual, and by a part of the difference.
  Result<std::optional<LateRank>> late_rank_of(const std::vector<RankRecord>& records,
                                               TimeNs more_ns) {
    std::optional<LateRank> late;
    if (records.size() < 2) return late;
    std::vector<std::int64_t> here;
    for (const std::size_t i : evenly_chosen(chosen_, kRankStepsMax)) here.push_back(row(i).id);
    std::vector<std::int64_t> usual = result_.usual_steps;
    usual.resize(std::min(usual.size(), kRankStepsMax));
    ASSIGN_OR_RETURN(const RankAnalysis now, analyze_ranks(records, here));
    ASSIGN_OR_RETURN(const RankAnalysis then, analyze_ranks(records, usual));
    if (!now.why_unknown.empty() || !then.why_unknown.empty()) return late;
    TimeNs most_ns = more_ns / 5;
    for (std::size_t r = 0; r < now.ranks.size() && r < then.ranks.size(); ++r) {
      const TimeNs longer_ns = now.ranks[r].awaited_ns - then.ranks[r].awaited_ns;
      if (longer_ns <= most_ns) continue;
      most_ns = longer_ns;
      late = LateRank{now.ranks[r].rank, now.ranks[r].awaited_ns, then.ranks[r].awaited_ns,
                      longer_part(now.ranks[r], then.ranks[r], longer_ns)};
    }
    return late;
  }

  static std::string longer_part(const RankUse& now, const RankUse& then, TimeNs longer_ns) {
    struct RankPart {
      const char* what;
      TimeNs RankUse::* ns;
    };
    constexpr std::array<RankPart, 3> kPartsOfRank = {
        RankPart{"forward", &RankUse::forward_ns}, RankPart{"backward", &RankUse::backward_ns},
        RankPart{"update and commit", &RankUse::rest_ns}};
    const auto more = [&](const RankPart& part) { return now.*part.ns - then.*part.ns; };
    const RankPart& most = *std::ranges::max_element(kPartsOfRank, {}, more);
    if (more(most) < longer_ns / 5) return "";
    return fmt::format("its {} took {} longer than usual", most.what, format_duration(more(most)));
  }

  // What passed between the step before and this one is no step's: validation, a snapshot.
  Status note_gap() {
    const std::size_t first = chosen_.front();
    if (first == 0) return ok_status();
    const auto gap_before = [this](std::size_t i) {
      return row(i).ts - row(i - 1).ts - row(i - 1).dur;
    };
    std::vector<double> gaps;
    for (std::size_t i = 1; i < steps_.size(); ++i)
      gaps.push_back(static_cast<double>(gap_before(i)));
    const TimeNs usual_ns = whole_ns(median_of(std::move(gaps)));
    const TimeNs gap_ns = gap_before(first);
    const TimeNs step_ns = result_.has_usual() ? result_.usual_dur : result_.dur;
    if (static_cast<double>(gap_ns - usual_ns) < kGapShare * static_cast<double>(step_ns))
      return ok_status();
    const TimeNs from = row(first).ts - gap_ns;
    std::map<std::string, TimeNs> by_name;
    RETURN_IF_ERROR(rundb::SpanReader(reader_).each_span_between(
        from + 1, row(first).ts - 1, [&](const rundb::SpanRow& span) {
          const TimeNs within = std::min(span.end_ts(), row(first).ts) - std::max(span.ts, from);
          const auto name = info_.strings.find(span.name_id);
          if (within > gap_ns / 10 && name != info_.strings.end()) by_name[name->second] += within;
        }));
    std::vector<std::pair<TimeNs, std::string>> longest;
    for (const auto& [name, ns] : by_name) longest.emplace_back(ns, name);
    std::ranges::sort(longest, std::greater<>());
    longest.resize(std::min(longest.size(), kNamesOfGap));
    std::string names;
    for (const auto& [ns, name] : longest) names += (names.empty() ? "" : ", ") + name;
    result_.notes.push_back(fmt::format(
        "Before it, {} passed since the end of step {}, instead of {}{}; no step has that time.",
        format_duration(gap_ns), row(first - 1).id + 1,
        format_duration(std::max<TimeNs>(0, usual_ns)), names.empty() ? "" : ": " + names));
    return ok_status();
  }

  rundb::Reader& reader_;
  const RunInfo& info_;
  const std::vector<rundb::StepRow>& steps_;
  const std::vector<RankRecord>& ranks_;
  const UsualStepsOfRun& usual_steps_;
  UsualProfiles& profiles_;
  std::vector<std::size_t> chosen_;  // indices
  StepsBeside found_;
  RunAnalysis evidence_;  // for why operations say nothing
  StepExplanation result_;
};

std::string more_words(TimeNs more_ns) {
  return more_ns == 0 ? "the same"
                      : fmt::format("{} {}", format_duration(std::abs(more_ns)),
                                    more_ns > 0 ? "more" : "less");
}

}  // namespace

std::string_view reason_name(ReasonKind kind) {
  return kReasonNames[static_cast<std::size_t>(kind)];
}

std::string StepExplanation::name() const { return name_of(steps); }

std::string StepExplanation::words() const {
  std::string text = name();
  text.front() = 'S';
  text +=
      fmt::format(" took {}{}", format_duration(dur), step_count > 1 ? " each, on average" : "");
  if (!has_usual()) {
    return text + fmt::format(". Nothing says what is usual: {}.", why_no_usual);
  }
  const TimeNs more = more_ns();
  const double percent =
      usual_dur > 0 ? 100.0 * static_cast<double>(std::abs(more)) / static_cast<double>(usual_dur)
                    : 0;
  const std::string of =
      fmt::format("the median of {} usual steps, {}",
                  format_whole(static_cast<std::int64_t>(usual_count)), format_duration(usual_dur));
  if (more == 0) return text + fmt::format(", as long as {}.", of);
  return text + fmt::format(", {} ({:.0f} %) {} than {}: {} the noise.",
                            format_duration(std::abs(more)), percent, more > 0 ? "more" : "less",
                            of, is_beyond_noise ? "beyond" : "within");
}

std::string StepExplanation::words_of(const ExplainedCause& cause) const {
  if (!has_usual())
    return fmt::format("{}: {}", cause_phrase(cause.cause), format_duration(cause.ns));
  return fmt::format("{}: {} instead of {}, {}{}", cause_phrase(cause.cause),
                     format_duration(cause.ns), format_duration(cause.usual_ns),
                     more_words(cause.more_ns()),
                     cause.is_within_noise ? "; within the noise" : "");
}

bool StepExplanation::is_worth_a_line(const ExplainedCause& cause) const {
  constexpr TimeNs kOfStep = 100;
  constexpr TimeNs kOfDifference = 1000;
  return cause.reason || cause.ns >= dur / kOfStep ||
         std::abs(cause.more_ns()) >= dur / kOfDifference;
}

const StepReason* StepExplanation::first_reason() const {
  for (const ExplainedCause& cause : causes) {
    if (cause.reason) return &*cause.reason;
  }
  return nullptr;
}

Result<StepExplanation> explain_steps(rundb::Reader& reader, const RunInfo& info,
                                      const std::vector<rundb::StepRow>& steps, StepRange chosen,
                                      const std::vector<RankRecord>& ranks) {
  ASSIGN_OR_RETURN(std::vector<StepExplanation> explained,
                   explain_each(reader, info, steps, {chosen}, ranks));
  return std::move(explained.front());
}

Result<std::vector<StepExplanation>> explain_each(rundb::Reader& reader, const RunInfo& info,
                                                  const std::vector<rundb::StepRow>& steps,
                                                  const std::vector<StepRange>& chosen,
                                                  const std::vector<RankRecord>& ranks) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> with_operations,
                   steps_with_operations(reader, steps));
  const UsualStepsOfRun usual(info, steps, steps.size() - with_operations.size());
  UsualProfiles profiles;
  std::vector<StepExplanation> explained;
  for (const StepRange range : chosen) {
    Explaining explaining(reader, info, steps, ranks, usual, profiles);
    ASSIGN_OR_RETURN(explained.emplace_back(), explaining.explain(range));
  }
  return explained;
}

}  // namespace sluice::analyze
