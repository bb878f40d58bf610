#pragma once
// A run of several ranks as one: what each rank's steps were spent on, and which rank the others
// wait for.
//
// Ranks meet in calls: all_reduce, commit_ranks, whatever a stage of place `ranks` is. A call
// cannot end before its last rank has begun it, so until then all others wait for that one. The
// wait counts where a rank did nothing else meanwhile; that time is charged to the rank that came
// last. Begins are compared by rank 0's clock, and where the last two are nearer than the clocks
// are known, nobody is called the last.
//
// Thread contract: free functions. Memory: one step of one rank at a time, and its calls.

#include <optional>
#include <string>
#include <vector>

#include "profiler/analyze/answer.h"
#include "profiler/analyze/rank_records.h"

namespace sluice::analyze {

// Means of the steps looked at. step = time with forward or backward + exposed + the rest.
struct RankUse {
  int rank = 0;
  TimeNs step_ns = 0;
  TimeNs forward_ns = 0;
  TimeNs backward_ns = 0;
  TimeNs exposed_ns = 0;       // something was on its way between ranks, and nothing else went on
  TimeNs hidden_ns = 0;        // and something else went on
  TimeNs waiting_ns = 0;       // of exposed_ns: until the last rank had begun
  TimeNs rest_ns = 0;          // update, commit, and what is between
  TimeNs awaited_ns = 0;       // of the others' waiting_ns: for this rank; the mean of the others
  std::size_t last_count = 0;  // calls that it began last
  TimeNs late_ns = 0;          // in those: after the one before it, the median
};

struct RankAnalysis {
  std::vector<std::int64_t> steps;  // looked at; none: why_unknown says why
  std::vector<RankUse> ranks;       // by rank
  std::size_t call_count = 0;       // that all ranks have in the record
  std::size_t close_count = 0;      // of them: nearer together than the clocks are known
  TimeNs bound_ns = 0;              // of the clocks, the worst of them
  std::optional<int> straggler;     // the rank that the others wait for
  std::string why_unknown;          // no sentence of its own

  const RankUse& of(int rank) const { return ranks[static_cast<std::size_t>(rank)]; }
  // Shares of the ranks' steps, on average.
  double exposed_share() const;
  double hidden_share() const;
  double waiting_share() const;
};

// From here on a rank that others wait for is worth a name: its part of their steps.
inline constexpr double kStragglerShare = 0.02;

// `steps`: by id; those that not all ranks have are left out.
Result<RankAnalysis> analyze_ranks(const std::vector<RankRecord>& records,
                                   const std::vector<std::int64_t>& steps);

// Its outcome.
Answer ranks_answer(const RankAnalysis& analysis);
// Who is waited for and why, and what communication takes: sentences.
std::vector<std::string> rank_findings(const RankAnalysis& analysis);

}  // namespace sluice::analyze
