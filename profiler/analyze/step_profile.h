#pragma once
// What one step's causes and operations took, small enough to keep of many steps.
//
// Thread contract: plain data and free functions.

#include <array>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "profiler/analyze/critical_path.h"

namespace sluice::analyze {

// Track, name and device; all -1: nothing was running.
using OperationKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
inline constexpr OperationKey kNoOperation = {-1, -1, -1};

// Operations of one key in one step, or their mean of several.
struct OperationSum {
  double count = 0;
  double bytes = 0;  // with padding
  double dur_ns = 0;
  std::array<double, kCauseCount> path_ns{};  // on the path, by cause

  // As long for the same bytes or, where there are none, for one operation. 0: it has neither.
  double ns_a_unit() const;
};

// What an operation is, whichever step it is of.
struct OperationNames {
  const TrackInfo* track = nullptr;  // null: nothing was running
  const std::string* name = nullptr;
  const rundb::StageRow* stage = nullptr;
  std::int64_t device = -1;
};

struct StepProfile {
  TimeNs dur = 0;
  std::size_t operation_count = 0;  // of the schedule
  std::array<double, kCauseCount> cause_ns{};
  std::map<OperationKey, OperationSum> operations;
};

// A piece of a chosen step's path, and what let a wait of the schedule end.
struct ProfiledPiece {
  double ns = 0;
  Cause cause = Cause::other;
  OperationKey key = kNoOperation;
  std::int64_t span = -1;  // of a gap what came after it
};

// Something that ended while the schedule waited.
struct AwaitedSpan {
  OperationKey waiting;
  OperationKey key;
  std::int64_t span = -1;
  double dur_ns = 0;
  double bytes = 0;
};

using NamesOfOperations = std::map<OperationKey, OperationNames>;

// Ids of operations, the longest first.
using LongestSpans = std::map<OperationKey, std::vector<std::pair<TimeNs, std::int64_t>>>;

OperationKey operation_key(const Span& span);

StepProfile profile_of(const StepData& step, const StepVerdict& verdict, NamesOfOperations& names);
std::vector<ProfiledPiece> pieces_of(const StepData& step, const StepVerdict& verdict);
std::vector<AwaitedSpan> awaited_in(const StepData& step, const StepVerdict& verdict);
// At most `count` of each key, with what is there already.
void add_longest(const StepData& step, std::size_t count, LongestSpans& longest);

// The mean of the chosen steps; the median of the usual ones, figure by figure.
StepProfile mean_of(const std::vector<StepProfile>& steps);
StepProfile median_profile_of(const std::vector<StepProfile>& steps);

}  // namespace sluice::analyze
