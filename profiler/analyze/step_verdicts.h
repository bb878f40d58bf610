#pragma once
// Shares of each step as table `verdict` keeps them: whoever records a run writes them when it
// ends, whoever reads one that has none (it is live, or was killed) computes them.
//
// Thread contract: free functions that use their reader.

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

using Shares = std::array<double, kCauseCount>;

// A run ends without much ado: N spans are looked at in about ten seconds
// (docs/measurements.md), and of a longer run the last steps are.
inline constexpr std::int64_t kVerdictSpansMax = 20'000'000;

// The verdicts of `first_step` and later steps whose operations are in the record; shares of 0 have
// no row.
Result<std::vector<rundb::VerdictRow>> compute_verdicts(rundb::Reader& reader, const RunInfo& info,
                                                        std::int64_t first_step,
                                                        std::int64_t spans_max = kVerdictSpansMax);

// By step, of those in table `verdict`; causes that this Sluice does not know count as `other`.
Result<std::map<std::int64_t, Shares>> stored_verdicts(rundb::Reader& reader,
                                                       std::int64_t first_step);

}  // namespace sluice::analyze
