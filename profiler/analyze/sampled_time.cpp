#include "profiler/analyze/sampled_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "storage/rundb/sample_reader.h"
#include "storage/rundb/span_reader.h"

namespace sluice::analyze {
namespace {

constexpr std::size_t kChainMax = 256;
constexpr const char* kUnknownCode = "code of no library (made at run time)";

// In which time; at first all of a record.
struct Stretch {
  TimeNs begin = rundb::kBeforeAllSamples;
  TimeNs end = rundb::kBehindAllSamples;
};

Result<Stretch> stretch_of(const std::vector<rundb::StepRow>& steps, StepRange chosen) {
  const auto first = std::ranges::find(steps, chosen.first, &rundb::StepRow::id);
  const auto last = std::ranges::find(steps, chosen.last, &rundb::StepRow::id);
  if (first != steps.end() && last != steps.end() && first <= last)
    return Stretch{first->ts, last->ts + last->dur};
  if (steps.empty()) return make_error(ErrorCode::config, "the run has no steps");
  return make_error(ErrorCode::config, "the run has steps {} to {}, not {} to {}",
                    steps.front().id + 1, steps.back().id + 1, chosen.first + 1, chosen.last + 1);
}

// The tables that say what the ids of samples stand for.
class Calls {
 public:
  static Result<Calls> load(rundb::SampleReader& reader) {
    Calls calls;
    ASSIGN_OR_RETURN(const auto functions, reader.functions());
    for (const rundb::SampledFunctionRow& row : functions) calls.functions_[row.id] = row;
    ASSIGN_OR_RETURN(const auto rows, reader.calls());
    for (const rundb::CallRow& row : rows) calls.calls_[row.id] = row;
    return calls;
  }

  // The functions of a chain, the innermost first. A caller's id is smaller, so it has an end; what
  // is longer than any that is recorded (profiler/sample/perf_records.h) is cut.
  std::vector<std::int64_t> chain_of(std::int64_t call_id) const {
    std::vector<std::int64_t> functions;
    for (auto call = calls_.find(call_id); call != calls_.end() && functions.size() < kChainMax;
         call = calls_.find(call->second.caller_id)) {
      functions.push_back(call->second.function_id);
    }
    return functions;
  }
  SampledFunction function(std::int64_t id) const {
    const auto row = functions_.find(id);
    if (row == functions_.end() || row->second.name.empty()) return {.name = kUnknownCode};
    return {.name = row->second.name, .library = row->second.library};
  }

 private:
  std::unordered_map<std::int64_t, rundb::SampledFunctionRow> functions_;
  std::unordered_map<std::int64_t, rundb::CallRow> calls_;
};

// Samples by the call that they were in.
class Counts {
 public:
  void add(std::int64_t call_id) {
    ++sample_count_;
    ++by_call_[call_id];
  }

  std::int64_t sample_count() const { return sample_count_; }

  SampledFunctions functions(const Calls& calls) const {
    // By name: a file that was gone on with has a function once a stretch of its recording.
    std::map<std::pair<std::string, std::string>, SampledFunction> by_name;
    for (const auto& [call_id, count] : by_call_) {
      const std::vector<std::int64_t> chain = calls.chain_of(call_id);
      std::set<std::int64_t> counted;  // once a sample, however often a function called itself
      for (std::size_t i = 0; i < chain.size(); ++i) {
        if (!counted.insert(chain[i]).second) continue;
        const SampledFunction named = calls.function(chain[i]);
        SampledFunction& function =
            by_name.try_emplace({named.name, named.library}, named).first->second;
        function.total_count += count;
        if (i == 0) function.self_count += count;
      }
    }
    std::vector<SampledFunction> list;
    for (auto& [name, function] : by_name) list.push_back(std::move(function));
    return {.sample_count = sample_count_,
            .by_self = most_of(list, &SampledFunction::self_count),
            .by_total = most_of(list, &SampledFunction::total_count)};
  }

 private:
  static std::vector<SampledFunction> most_of(std::vector<SampledFunction> list,
                                              std::int64_t SampledFunction::* count) {
    std::ranges::stable_sort(list, std::greater<>(), count);
    if (list.size() > kSampledFunctionsMax) list.resize(kSampledFunctionsMax);
    std::erase_if(list, [count](const SampledFunction& one) { return one.*count == 0; });
    return list;
  }

  std::unordered_map<std::int64_t, std::int64_t> by_call_;
  std::int64_t sample_count_ = 0;
};

ProcessorShares shares_of(const rundb::ProcessorTimeRow& sum) {
  if (sum.dur == 0) return {};
  const auto share = [&sum](TimeNs ns) {
    return static_cast<double>(ns) / static_cast<double>(sum.dur);
  };
  return {share(sum.running), share(sum.preempted), share(sum.waiting)};
}

// The part of a row that lies in the stretch. Within a row the states are taken as spread evenly.
rundb::ProcessorTimeRow part_of(const rundb::ProcessorTimeRow& row, Stretch stretch) {
  const TimeNs begin = std::max(row.ts, stretch.begin);
  const TimeNs end = std::min(row.end_ts(), stretch.end);
  if (begin == row.ts && end == row.end_ts()) return row;
  const double part = static_cast<double>(end - begin) / static_cast<double>(row.dur);
  const auto in_part = [part](TimeNs ns) {
    return static_cast<TimeNs>(static_cast<double>(ns) * part);
  };
  rundb::ProcessorTimeRow inside = row;
  inside.dur = end - begin;
  inside.running = in_part(row.running);
  inside.preempted = in_part(row.preempted);
  inside.waiting = inside.dur - inside.running - inside.preempted;
  return inside;
}

void add(rundb::ProcessorTimeRow& sum, const rundb::ProcessorTimeRow& row) {
  sum.dur += row.dur;
  sum.running += row.running;
  sum.preempted += row.preempted;
  sum.waiting += row.waiting;
}

Status add_threads(rundb::SampleReader& reader, Stretch stretch,
                   const std::vector<rundb::CallSampleRow>& samples, SampledTime& time) {
  ASSIGN_OR_RETURN(const auto rows, reader.times_between(stretch.begin, stretch.end));
  ASSIGN_OR_RETURN(const auto threads, reader.threads());
  std::map<std::int64_t, rundb::ProcessorTimeRow> sums;
  rundb::ProcessorTimeRow all;
  TimeNs begin = std::numeric_limits<TimeNs>::max();
  TimeNs end = std::numeric_limits<TimeNs>::min();
  for (const rundb::ProcessorTimeRow& row : rows) {
    const rundb::ProcessorTimeRow part = part_of(row, stretch);
    add(sums[row.thread_id], part);
    add(all, part);
    begin = std::min(begin, part.ts);
    end = std::max(end, part.end_ts());
  }
  if (!rows.empty() && !time.steps) time.dur = end - begin;
  time.shares = shares_of(all);
  time.running_ns = all.running;
  time.thread_count = sums.size();
  for (const rundb::SampledThreadRow& row : threads) {
    const auto sum = sums.find(row.id);
    if (sum == sums.end()) continue;
    time.threads.push_back(
        {.name = row.name,
         .tid = row.tid,
         .dur = sum->second.dur,
         .shares = shares_of(sum->second),
         .sample_count = std::ranges::count(samples, row.id, &rundb::CallSampleRow::thread_id)});
  }
  const auto ran_ns = [](const SampledThread& thread) {
    return static_cast<double>(thread.dur) * thread.shares.running;
  };
  std::ranges::stable_sort(time.threads, std::greater<>(), ran_ns);
  if (time.threads.size() > kSampledThreadsMax) time.threads.resize(kSampledThreadsMax);
  return ok_status();
}

// When operations were under way: by their name, and by that of the threads that ran them, "" where
// that is not known.
using Operations = std::map<std::pair<std::string, std::string>, Intervals>;

Result<Operations> operations_between(rundb::Reader& reader, const RunInfo& info, Stretch stretch,
                                      const std::set<std::string>& thread_names) {
  Operations operations;
  RETURN_IF_ERROR(rundb::SpanReader(reader).each_span_between(
      stretch.begin, stretch.end, [&](const rundb::SpanRow& row) {
        const auto track = info.tracks.find(row.track_id);
        const auto name = info.strings.find(row.name_id);
        if (track == info.tracks.end() || name == info.strings.end() || row.dur == 0) return;
        if (track->second.is_beside_schedule() || track->second.is_waiting()) return;
        const std::string& kind = track->second.kind;
        const bool has_threads =
            (kind == "compute" || kind == "host") && thread_names.contains(kind);
        operations[{name->second, has_threads ? kind : std::string()}].add(row.ts, row.end_ts());
      }));
  return operations;
}

bool contains(const std::vector<Interval>& intervals, TimeNs ts) {
  const auto after = std::ranges::upper_bound(intervals, ts, {}, &Interval::first);
  return after != intervals.begin() && ts < std::prev(after)->second;
}

Status add_stages(rundb::Reader& reader, const RunInfo& info, Stretch stretch, const Calls& calls,
                  const std::vector<rundb::CallSampleRow>& samples, SampledTime& time) {
  ASSIGN_OR_RETURN(const auto threads, rundb::SampleReader(reader).threads());
  std::map<std::int64_t, std::string> names;
  std::set<std::string> thread_names;
  for (const rundb::SampledThreadRow& row : threads) {
    names[row.id] = row.name;
    thread_names.insert(row.name);
  }
  ASSIGN_OR_RETURN(Operations operations, operations_between(reader, info, stretch, thread_names));
  for (auto& [what, intervals] : operations) {
    const auto& [name, of_threads] = what;
    Counts counts;
    for (const rundb::CallSampleRow& sample : samples) {
      if (!of_threads.empty() && names[sample.thread_id] != of_threads) continue;
      if (contains(intervals.merged(), sample.ts)) counts.add(sample.call_id);
    }
    if (counts.sample_count() > 0)
      time.stages.push_back({name, of_threads, counts.functions(calls)});
  }
  std::ranges::stable_sort(time.stages, std::greater<>(),
                           [](const SampledStage& stage) { return stage.functions.sample_count; });
  return ok_status();
}

Result<std::int64_t> lost_count(rundb::Reader& reader) {
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> stats, reader.stats());
  const auto lost = std::ranges::find(stats, "processor_samples_lost", &rundb::StatRow::name);
  return lost == stats.end() ? 0 : lost->value;
}

}  // namespace

double SampledFunctions::share(std::int64_t count) const {
  return sample_count == 0 ? 0 : static_cast<double>(count) / static_cast<double>(sample_count);
}

// After Wilson, whose interval is sensible for few samples and for shares of 0 and 1, too.
double SampledFunctions::uncertainty(std::int64_t count) const {
  constexpr double kTwoSided95 = 1.96;
  if (sample_count == 0) return 1;
  const double n = static_cast<double>(sample_count);
  const double p = share(count);
  const double z2 = kTwoSided95 * kTwoSided95;
  return kTwoSided95 * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n);
}

double SampledFunctions::uncertain_points(std::int64_t count) const {
  return std::max(1.0, 100 * uncertainty(count));
}

Result<SampledTime> sampled_time(rundb::Reader& reader, const RunInfo& info,
                                 const std::vector<rundb::StepRow>& steps,
                                 std::optional<StepRange> chosen) {
  SampledTime time{.steps = chosen};
  Stretch stretch;
  if (chosen) {
    ASSIGN_OR_RETURN(stretch, stretch_of(steps, *chosen));
    time.dur = stretch.end - stretch.begin;
  }
  rundb::SampleReader sample_reader(reader);
  ASSIGN_OR_RETURN(const bool has_samples, sample_reader.has_samples());
  if (!has_samples) {
    time.why_none =
        "the run was not sampled; record_samples=99 samples one, --samples 99 of sluice record a "
        "program of another's";
    return time;
  }
  ASSIGN_OR_RETURN(time.lost_count, lost_count(reader));
  ASSIGN_OR_RETURN(const auto samples, sample_reader.samples_between(stretch.begin, stretch.end));
  ASSIGN_OR_RETURN(const Calls calls, Calls::load(sample_reader));
  RETURN_IF_ERROR(add_threads(sample_reader, stretch, samples, time));
  Counts counts;
  for (const rundb::CallSampleRow& sample : samples) counts.add(sample.call_id);
  time.functions = counts.functions(calls);
  if (samples.empty()) {
    time.why_none = "no sample fell into this time";
    return time;
  }
  RETURN_IF_ERROR(add_stages(reader, info, stretch, calls, samples, time));
  return time;
}

}  // namespace sluice::analyze
