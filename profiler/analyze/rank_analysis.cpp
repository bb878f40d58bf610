#include "profiler/analyze/rank_analysis.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

#include "base/figure_text.h"
#include "profiler/analyze/intervals.h"
#include "profiler/analyze/trend.h"

namespace sluice::analyze {
namespace {

// Stage, layer, and which of those in the step.
using CallKey = std::tuple<std::string, std::int64_t, std::size_t>;

struct Meeting {
  TimeNs begin_ts = 0;  // by rank 0's clock
  TimeNs end_ts = 0;
};

bool is_between_ranks(const Span& span) {
  return span.stage != nullptr && span.stage->place == "ranks";
}

// One rank's step.
struct RankStep {
  Intervals between_ranks, anything_else, forward, backward;
  std::map<CallKey, Meeting> calls;
  TimeNs begin_ts = 0;
  TimeNs end_ts = 0;
};

class StepOfRank {
 public:
  StepOfRank(const RankRecord& record, const StepData& data) : clock_(record.clock), data_(data) {}

  RankStep take() {
    step_.begin_ts = clock_.to_first(data_.row.ts);
    step_.end_ts = clock_.to_first(data_.row.ts + data_.row.dur);
    std::vector<const Span*> spans;
    for (const Span& span : data_.spans) {
      if (!span.track->is_beside_schedule() && !span.track->is_waiting()) spans.push_back(&span);
    }
    std::ranges::stable_sort(spans, {}, &Span::ts);
    for (const Span* span : spans) add(*span);
    return std::move(step_);
  }

 private:
  void add(const Span& span) {
    const Meeting whole{clock_.to_first(span.ts), clock_.to_first(span.end_ts())};
    const TimeNs begin_ts = std::max(whole.begin_ts, step_.begin_ts);
    const TimeNs end_ts = std::min(whole.end_ts, step_.end_ts);
    if (!is_between_ranks(span)) {
      step_.anything_else.add(begin_ts, end_ts);
      // Work on a gradient belongs to backward's phase, and is no backward.
      if (span.stage == nullptr || span.track->kind != "compute") return;
      if (span.stage->phase == "forward") step_.forward.add(begin_ts, end_ts);
      if (span.stage->phase == "backward") step_.backward.add(begin_ts, end_ts);
      return;
    }
    step_.between_ranks.add(begin_ts, end_ts);
    if (span.step_id != data_.row.id) return;  // a call of the step beside
    const std::size_t number = count_[{*span.name, span.layer_id}]++;
    step_.calls[{*span.name, span.layer_id, number}] = whole;
  }

  const RankClock& clock_;
  const StepData& data_;
  RankStep step_;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> count_;
};

class AnalysisOfRanks {
 public:
  explicit AnalysisOfRanks(const std::vector<RankRecord>& records)
      : records_(records), late_(records.size()) {
    for (const RankRecord& record : records) {
      result_.ranks.push_back({.rank = record.rank});
      result_.bound_ns = std::max(result_.bound_ns, record.bound_ns);
    }
  }

  Result<RankAnalysis> run(const std::vector<std::int64_t>& steps) {
    for (const std::int64_t step : steps) RETURN_IF_ERROR(look_at(step));
    finish();
    return std::move(result_);
  }

 private:
  // Null: the rank has no such step in its record.
  static const rundb::StepRow* row_of(const RankRecord& record, std::int64_t step) {
    const auto row = std::ranges::find(record.steps, step, &rundb::StepRow::id);
    return row == record.steps.end() ? nullptr : &*row;
  }

  Status look_at(std::int64_t step) {
    std::vector<RankStep> ranks;
    for (const RankRecord& record : records_) {
      const rundb::StepRow* row = row_of(record, step);
      if (row == nullptr) return ok_status();
      ASSIGN_OR_RETURN(const StepData data, load_step(record, *row));
      ranks.push_back(StepOfRank(record, data).take());
    }
    result_.steps.push_back(step);
    for (std::size_t r = 0; r < ranks.size(); ++r) add_times(ranks[r], result_.ranks[r]);
    charge_waits(ranks);
    return ok_status();
  }

  static void add_times(RankStep& step, RankUse& use) {
    const TimeNs hidden_ns = Intervals::both_ns(step.between_ranks, step.anything_else);
    const TimeNs exposed_ns = step.between_ranks.sum_ns() - hidden_ns;
    Intervals model;
    for (Intervals* part : {&step.forward, &step.backward}) {
      for (const auto& [begin, end] : part->merged()) model.add(begin, end);
    }
    use.step_ns += step.end_ts - step.begin_ts;
    use.forward_ns += step.forward.sum_ns();
    use.backward_ns += step.backward.sum_ns();
    use.hidden_ns += hidden_ns;
    use.exposed_ns += exposed_ns;
    use.rest_ns += step.end_ts - step.begin_ts - model.sum_ns() - exposed_ns;
  }

  // Waits of each rank, for whom they were.
  void charge_waits(std::vector<RankStep>& ranks) {
    const std::size_t count = ranks.size();
    std::vector<std::vector<Intervals>> waits(count, std::vector<Intervals>(count));
    for (const auto& [key, first] : ranks.front().calls) {
      std::vector<std::pair<TimeNs, std::size_t>> begins;
      for (std::size_t r = 0; r < count; ++r) {
        const auto call = ranks[r].calls.find(key);
        if (call != ranks[r].calls.end()) begins.emplace_back(call->second.begin_ts, r);
      }
      if (begins.size() < count) continue;
      ++result_.call_count;
      std::ranges::sort(begins);
      const auto [last_ts, last] = begins.back();
      if (is_close(begins)) {
        ++result_.close_count;
      } else {
        ++result_.ranks[last].last_count;
        late_[last].push_back(static_cast<double>(last_ts - begins[count - 2].first));
      }
      for (const auto& [begin_ts, rank] : begins) {
        const RankStep& step = ranks[rank];
        waits[rank][last].add(std::max(begin_ts, step.begin_ts),
                              std::min({last_ts, step.calls.at(key).end_ts, step.end_ts}));
      }
    }
    for (std::size_t r = 0; r < count; ++r) add_waits(ranks[r], waits[r], r);
  }

  bool is_close(const std::vector<std::pair<TimeNs, std::size_t>>& begins) const {
    if (begins.size() < 2) return true;
    const auto& [last_ts, last] = begins[begins.size() - 1];
    const auto& [before_ts, before] = begins[begins.size() - 2];
    return last_ts - before_ts <= records_[last].bound_ns + records_[before].bound_ns;
  }

  void add_waits(RankStep& step, std::vector<Intervals>& for_rank, std::size_t rank) {
    Intervals all;
    for (std::size_t last = 0; last < for_rank.size(); ++last) {
      Intervals& waits = for_rank[last];
      for (const auto& [begin, end] : waits.merged()) all.add(begin, end);
      result_.ranks[last].awaited_ns +=
          waits.sum_ns() - Intervals::both_ns(waits, step.anything_else);
    }
    result_.ranks[rank].waiting_ns += all.sum_ns() - Intervals::both_ns(all, step.anything_else);
  }

  void finish() {
    if (result_.steps.empty()) {
      result_.why_unknown = "no step is in the records of all ranks";
      return;
    }
    const auto steps = static_cast<TimeNs>(result_.steps.size());
    const auto others = static_cast<TimeNs>(std::max<std::size_t>(1, records_.size() - 1));
    for (std::size_t r = 0; r < result_.ranks.size(); ++r) {
      RankUse& use = result_.ranks[r];
      for (TimeNs* sum : {&use.step_ns, &use.forward_ns, &use.backward_ns, &use.exposed_ns,
                          &use.hidden_ns, &use.waiting_ns, &use.rest_ns})
        *sum /= steps;
      use.awaited_ns /= steps * others;
      if (!late_[r].empty()) use.late_ns = static_cast<TimeNs>(median_of(late_[r]));
    }
    if (result_.call_count == 0) {
      result_.why_unknown = "no call between ranks is in the records of all of them";
      return;
    }
    find_straggler();
  }

  // Who is waited for more than all others together.
  void find_straggler() {
    const auto awaited = [](TimeNs sum, const RankUse& use) { return sum + use.awaited_ns; };
    const TimeNs all_ns =
        std::accumulate(result_.ranks.begin(), result_.ranks.end(), TimeNs{0}, awaited);
    const RankUse& most = *std::ranges::max_element(result_.ranks, {}, &RankUse::awaited_ns);
    const bool is_worth_a_name =
        static_cast<double>(most.awaited_ns) >= kStragglerShare * static_cast<double>(most.step_ns);
    if (is_worth_a_name && most.last_count > 0 && most.awaited_ns > all_ns - most.awaited_ns) {
      result_.straggler = most.rank;
    }
  }

  const std::vector<RankRecord>& records_;
  RankAnalysis result_;
  std::vector<std::vector<double>> late_;  // by rank
};

double share_of(const RankAnalysis& analysis, TimeNs RankUse::* ns) {
  double part = 0;
  double whole = 0;
  for (const RankUse& use : analysis.ranks) {
    part += static_cast<double>(use.*ns);
    whole += static_cast<double>(use.step_ns);
  }
  return whole > 0 ? part / whole : 0;
}

std::string percent_text(double share) {
  return fmt::format("{:.{}f} %", share * 100, share < 0.1 ? 1 : 0);
}

// The part that takes the rank longer than the others, at the median; "": none worth a word.
std::string longer_words(const RankAnalysis& analysis, const RankUse& late) {
  struct Part {
    const char* what;
    TimeNs RankUse::* ns;
  };
  constexpr std::array<Part, 3> kParts = {Part{"forward takes", &RankUse::forward_ns},
                                          Part{"backward takes", &RankUse::backward_ns},
                                          Part{"update and commit take", &RankUse::rest_ns}};
  const Part* most = nullptr;
  TimeNs most_ns = late.awaited_ns / 10;  // less explains nothing
  for (const Part& part : kParts) {
    std::vector<double> others;
    for (const RankUse& use : analysis.ranks) {
      if (use.rank != late.rank) others.push_back(static_cast<double>(use.*part.ns));
    }
    const auto more_ns = late.*part.ns - static_cast<TimeNs>(median_of(std::move(others)));
    if (more_ns <= most_ns) continue;
    most = &part;
    most_ns = more_ns;
  }
  if (most == nullptr) return "";
  return fmt::format(" Its {} {} longer a step than the others' median.", most->what,
                     format_duration(most_ns));
}

std::string straggler_words(const RankAnalysis& analysis) {
  if (!analysis.straggler) {
    return fmt::format(
        "No single rank holds the others up; waiting for one another takes {} of a step.",
        percent_text(analysis.waiting_share()));
  }
  const RankUse& late = analysis.of(*analysis.straggler);
  return fmt::format(
             "The others wait for rank {}: {} a step, {} of it. It is the last to begin {} of {} "
             "calls between ranks, {} after the one before it (median).",
             late.rank, format_duration(late.awaited_ns),
             percent_text(static_cast<double>(late.awaited_ns) / static_cast<double>(late.step_ns)),
             format_whole(static_cast<std::int64_t>(late.last_count)),
             format_whole(static_cast<std::int64_t>(analysis.call_count)),
             format_duration(late.late_ns)) +
         longer_words(analysis, late);
}

}  // namespace

double RankAnalysis::exposed_share() const { return share_of(*this, &RankUse::exposed_ns); }
double RankAnalysis::hidden_share() const { return share_of(*this, &RankUse::hidden_ns); }
double RankAnalysis::waiting_share() const { return share_of(*this, &RankUse::waiting_ns); }

Result<RankAnalysis> analyze_ranks(const std::vector<RankRecord>& records,
                                   const std::vector<std::int64_t>& steps) {
  return AnalysisOfRanks(records).run(steps);
}

Answer ranks_answer(const RankAnalysis& analysis) {
  Answer answer;
  answer.of = "waiting for ranks";
  if (!analysis.why_unknown.empty()) {
    answer.why = analysis.why_unknown;
    return answer;
  }
  answer.outcome = analysis.straggler ? Outcome::answer : Outcome::nothing_found;
  answer.why = fmt::format("{} calls in {} steps of {} ranks",
                           format_whole(static_cast<std::int64_t>(analysis.call_count)),
                           analysis.steps.size(), analysis.ranks.size());
  return answer;
}

std::vector<std::string> rank_findings(const RankAnalysis& analysis) {
  if (!analysis.why_unknown.empty()) {
    return {"Which rank the others wait for is not known: " + analysis.why_unknown + "."};
  }
  std::vector<std::string> findings = {straggler_words(analysis)};
  findings.push_back(fmt::format(
      "Communication is under way for {} of a step: {} exposed, of which {} is waiting for ranks "
      "that have not begun, and {} hidden beside other work.",
      percent_text(analysis.exposed_share() + analysis.hidden_share()),
      percent_text(analysis.exposed_share()), percent_text(analysis.waiting_share()),
      percent_text(analysis.hidden_share())));
  if (analysis.close_count > 0) {
    findings.push_back(fmt::format(
        "In {} of {} calls the last two begins are nearer than the clocks are known ({}): neither "
        "is called the last.",
        format_whole(static_cast<std::int64_t>(analysis.close_count)),
        format_whole(static_cast<std::int64_t>(analysis.call_count)),
        format_duration(analysis.bound_ns)));
  }
  return findings;
}

}  // namespace sluice::analyze
