#pragma once
// The reason why a cause took more of a step than usual: which operations made the difference, and
// what is different about them (step_explanation.h).
//
// Thread contract: plain data and a free function.

#include <optional>
#include <string>
#include <vector>

#include "profiler/analyze/step_explanation.h"
#include "profiler/analyze/step_profile.h"

namespace sluice::analyze {

// The rank for which the others waited longer than usual.
struct LateRank {
  int rank = 0;
  TimeNs waited_ns = 0;
  TimeNs usual_ns = 0;
  std::string because;  // "its backward took 40 ms longer than usual"; "": not known
};

// A chosen step beside the usual one.
struct StepsBeside {
  const RunInfo* info = nullptr;
  std::int64_t step = 0;  // the first chosen
  StepProfile here;       // the mean of the chosen steps
  StepProfile usual;
  NamesOfOperations names;
  // From all chosen steps.
  std::vector<ProfiledPiece> pieces;
  std::vector<AwaitedSpan> awaited;
  LongestSpans longest;
  std::vector<rundb::LatenessRow> lateness;  // by steps
  std::optional<LateRank> late_rank;
};

// For a cause that took more than usual.
StepReason reason_of(const StepsBeside& beside, Cause cause);

// "csd2 state_read", "commit": what a sentence calls an operation.
std::string said_name(const OperationNames& names, const RunInfo& info);

}  // namespace sluice::analyze
