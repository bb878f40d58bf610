#pragma once
// The records of all ranks of a run as one database, which everything that opens a record opens.
//
// Whatever exists once is rank 0's: steps, devices, settings, changes, verdicts; and its samples.
// Operations, counters and links are those of all ranks, by rank 0's clock, on tracks that begin
// with the rank ("rank 2: csd0 state_read"). Each other rank's steps are spans on a track of their
// own
// ("rank 2: steps"). The analysis of the result says of rank 0 what its own record says.
//
// Processes of a program that were recorded together (analyze::open_process_records) are merged in
// the same way, with one clock: drives and stages are the same by their names, operations belong to
// the first one's step in which they end, samples are those of all, and so is the analysis.
//
// Thread contract: free functions. Memory: some thousand operations a rank, 16 bytes for each
// operation of the run, and the samples of one process.

#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/report/output.h"

namespace sluice::report {

struct MergedCounts {
  std::int64_t spans = 0;
  std::int64_t flows = 0;
};

// `records`: one database a rank (analyze::open_rank_records). ErrorCode::config also where they
// are of one merged already. ErrorCode::cancelled: `stop` asked for it; nothing is left.
Result<MergedCounts> merge_records(const std::vector<analyze::RankRecord>& records,
                                   const std::string& path, IfExists if_exists,
                                   const OnProgress& on_progress = {},
                                   const std::stop_token& stop = {});

}  // namespace sluice::report
