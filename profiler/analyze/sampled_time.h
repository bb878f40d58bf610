#pragma once
// What the threads of a run did on the processors in a stretch of time, as its samples say
// (docs/sampling.md): how long each ran, waited and was preempted, which functions ran, and which
// ran while operations of a name were under way.
//
// Operations of tracks of kind `compute` and `host` are joined with the samples of the threads that
// have the kind as their name (core/runtime/worker_pool.h), where there are such. Others are joined
// by time alone, since the record does not say on which thread an operation ran: what all threads
// did meanwhile counts.
//
// Thread contract: plain data and free functions that use their reader. Memory: the samples and
// operations of the stretch.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/analyze/intervals.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/step_range.h"

namespace sluice::analyze {

inline constexpr std::size_t kSampledFunctionsMax = 10;  // of a list
inline constexpr std::size_t kSampledThreadsMax = 32;

// Parts of a time; they add up to it.
struct ProcessorShares {
  double running = 0;
  double preempted = 0;
  double waiting = 0;
};

struct SampledThread {
  std::string name = {};
  std::int64_t tid = 0;
  TimeNs dur = 0;  // in which it was there
  ProcessorShares shares = {};
  std::int64_t sample_count = 0;
};

struct SampledFunction {
  std::string name = {};  // "code of no library (made at run time)" where that is all that is known
  std::string library = {};      // ""
  std::int64_t self_count = 0;   // samples in the function itself
  std::int64_t total_count = 0;  // in it or in what it called
};

// The functions of samples that are chosen somehow.
struct SampledFunctions {
  std::int64_t sample_count = 0;
  std::vector<SampledFunction> by_self = {};   // the most first, at most kSampledFunctionsMax
  std::vector<SampledFunction> by_total = {};  // the same

  double share(std::int64_t count) const;
  // Half of the width within which the true share of time lies in 19 of 20 cases, as if samples
  // were drawn one by one. Samples that follow each other are alike, so it is at least this.
  double uncertainty(std::int64_t count) const;
  // The same in points of a percentage, at least one.
  double uncertain_points(std::int64_t count) const;
};

// The samples in which operations of a name were under way. Operations overlap, so a sample may
// count for several names.
struct SampledStage {
  std::string name = {};
  std::string threads = {};  // the name of the threads whose samples these are; "": of all
  SampledFunctions functions = {};
};

struct SampledTime {
  std::optional<StepRange> steps = {};      // none: all of the record
  TimeNs dur = 0;                           // of the stretch
  std::int64_t lost_count = 0;              // of the whole record
  std::vector<SampledThread> threads = {};  // who ran the longest first, at most kSampledThreadsMax
  std::size_t thread_count = 0;
  ProcessorShares shares = {};            // of all threads' time
  TimeNs running_ns = 0;                  // of all threads
  SampledFunctions functions = {};        // of all samples
  std::vector<SampledStage> stages = {};  // who has the most samples first
  std::string why_none =
      {};  // why there are no samples here; no sentence of its own; "": there are
};

// `steps`: all of the run. ErrorCode::config: the run has no such steps; corrupt: damaged tables.
// A record without samples gives `why_none`, as does a stretch that has none.
Result<SampledTime> sampled_time(rundb::Reader& reader, const RunInfo& info,
                                 const std::vector<rundb::StepRow>& steps,
                                 std::optional<StepRange> chosen);

}  // namespace sluice::analyze
