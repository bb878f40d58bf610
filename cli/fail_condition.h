#pragma once
// The condition of `sluice compare --fail-if`.
//
// Thread contract: free functions.

#include <string>

#include "base/status.h"
#include "profiler/analyze/comparison.h"

namespace sluice::cli {

// "step_time>+3%", "loss>0.1", "host_write<-10%": a key, > or <, and a change with % or a
// difference without.
struct FailCondition {
  std::string text;
  std::string key;
  bool is_above = true;
  bool is_percent = false;
  double bound = 0;
};
// An unknown key is an error that names the nearest right one.
Result<FailCondition> parse_fail_condition(const std::string& text,
                                           const analyze::Comparison& comparison);
// A change within the noise does not trip it.
bool is_tripped(const FailCondition& condition, const analyze::Comparison& comparison);

}  // namespace sluice::cli
