#pragma once
// The records of a run's ranks, or of a program's processes, opened together: a database for each
// rank, or one that has all of them (profiler/report/merged_record.h). They are of one run, each
// rank is there once, and each rank's times can be told by rank 0's clock.
//
// Thread contract: one thread at a time.

#include <memory>
#include <string>
#include <vector>

#include "profiler/analyze/rank_clock.h"
#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

struct RankRecord {
  int rank = 0;
  std::string path;
  std::shared_ptr<rundb::Reader> reader;
  std::shared_ptr<const RunInfo> info;
  RankClock clock;
  TimeNs bound_ns = 0;                // of what `clock` says, or what the times were made by
  std::vector<rundb::StepRow> steps;  // by its own clock
};

// OUTPUT/rank-0/run.db and so on, of the folder of a run of several ranks (OUTPUT), in order of
// their names; none: it is none.
std::vector<std::string> rank_databases_in(const std::string& folder);

// The run.db of a folder that has one; any other path as it is.
std::string database_of(const std::string& path);
// The databases of the runs that the paths name: of a folder of several ranks theirs, rank 0's
// first; else database_of().
std::vector<std::string> databases_of(const std::vector<std::string>& paths);

// By rank, all of them. ErrorCode::config, with what to do: a database is of no run of several
// ranks, of another run, or of a rank that is there already; a rank is missing.
Result<std::vector<RankRecord>> open_rank_records(const std::vector<std::string>& paths);

// Key of meta of processes' records as one (profiler/report/merged_record.h): how many they are.
inline constexpr std::string_view kMergedProcesses = "merged_processes";
// The records of processes (rundb::kRecordedTogether), which have one clock: the first as it is
// named, and where it is named alone those beside it, in PATH.processes. Their ranks are their
// places. ErrorCode::config: one was not recorded together with the first, is named twice, or has
// all of them already.
Result<std::vector<RankRecord>> open_process_records(const std::vector<std::string>& paths);

// The same of a record that has all ranks; the reader and the info outlive what is returned.
Result<std::vector<RankRecord>> rank_records_in(rundb::Reader& reader, const RunInfo& info);

// By the rank's own clock.
Result<StepData> load_step(const RankRecord& record, const rundb::StepRow& step);

}  // namespace sluice::analyze
