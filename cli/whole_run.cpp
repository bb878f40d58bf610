#include "cli/whole_run.h"

#include "cli/progress_line.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/report/merged_record.h"

namespace sluice::cli {

Result<WholeRun> WholeRun::open(const std::string& path) {
  WholeRun run;
  run.databases_ = analyze::databases_of({path});
  if (analyze::rank_databases_in(path).empty()) {
    ASSIGN_OR_RETURN(run.reader_, rundb::Reader::open(run.own_database()));
    return run;
  }
  ASSIGN_OR_RETURN(const std::vector<analyze::RankRecord> records,
                   analyze::open_rank_records(run.databases_));
  run.databases_.front() = records.front().path;
  ASSIGN_OR_RETURN(report::MergedFile merged, report::MergedFile::create());
  ProgressLine progress;
  const auto counts = report::merge_records(
      records, merged.path(), report::IfExists::refuse,
      [&progress](double share) { progress.show(share, "reading all ranks"); });
  progress.finish();
  if (!counts.ok()) return counts.error();
  run.merged_.emplace(std::move(merged));
  ASSIGN_OR_RETURN(run.reader_, rundb::Reader::open(run.merged_->path()));
  return run;
}

}  // namespace sluice::cli
