#include "profiler/analyze/rank_records.h"

#include <algorithm>
#include <filesystem>

#include "storage/rundb/query.h"

namespace sluice::analyze {
namespace {

int number_of(const RunInfo& info, std::string_view key) {
  return static_cast<int>(info.meta_number(key, -1));
}

Result<RankRecord> open_record(const std::string& path) {
  RankRecord record;
  record.path = path;
  ASSIGN_OR_RETURN(record.reader, rundb::Reader::open(path));
  ASSIGN_OR_RETURN(RunInfo info, load_run_info(*record.reader));
  ASSIGN_OR_RETURN(record.steps, record.reader->steps());
  record.rank = number_of(info, "rank");
  record.info = std::make_shared<const RunInfo>(std::move(info));
  return record;
}

Status read_clock(RankRecord& record) {
  if (record.rank == 0) return ok_status();
  ASSIGN_OR_RETURN(const auto offsets, record.reader->clock_offsets());
  auto clock = RankClock::of(offsets);
  if (!clock.ok()) return clock.error().with_context(record.path);
  record.clock = *std::move(clock);
  return ok_status();
}

// The steps of another rank than the first stand in a record of all as spans.
Result<std::vector<rundb::StepRow>> steps_of_rank(rundb::Reader& reader, const RunInfo& info,
                                                  int rank) {
  std::vector<rundb::StepRow> steps;
  for (const auto& [id, track] : info.tracks) {
    if (track.kind != kRankSteps || track.rank != rank) continue;
    const auto use_row = [&steps](std::span<const rundb::Cell> row) {
      rundb::StepRow step;
      if (const auto* number = std::get_if<std::int64_t>(&row[0])) step.id = *number;
      if (const auto* ts = std::get_if<std::int64_t>(&row[1])) step.ts = *ts;
      if (const auto* dur = std::get_if<std::int64_t>(&row[2])) step.dur = *dur;
      steps.push_back(step);
      return ok_status();
    };
    RETURN_IF_ERROR(rundb::Query(reader).each_row(
        fmt::format("SELECT span.step_id, span.ts, span.dur FROM span_run JOIN span ON span.id "
                    "BETWEEN span_run.first_id AND span_run.last_id WHERE span_run.track_id = {} "
                    "ORDER BY span.step_id",
                    id),
        use_row));
  }
  return steps;
}

Result<std::vector<RankRecord>> records_in(const RankRecord& all) {
  const int count = number_of(*all.info, kMergedRanks);
  if (count < 1 || static_cast<std::size_t>(count) > all.info->tracks.size()) {
    return make_error(ErrorCode::corrupt, "it says that it has {} ranks, and has not",
                      all.info->meta_value(kMergedRanks));
  }
  std::vector<RankRecord> records;
  for (int rank = 0; rank < count; ++rank) {
    RankRecord& record = records.emplace_back(all);
    record.rank = rank;
    if (rank == 0) continue;
    record.bound_ns = static_cast<TimeNs>(all.info->meta_number(kMergedBound, 0));
    ASSIGN_OR_RETURN(record.steps, steps_of_rank(*all.reader, *all.info, rank));
  }
  return records;
}

Status check_one(const RankRecord& record) {
  if (record.info->has_all_ranks()) {
    return make_error(ErrorCode::config,
                      "{}: has all ranks of its run already; name it alone, or the records of its "
                      "ranks",
                      record.path);
  }
  if (record.rank >= 0 && number_of(*record.info, "ranks") > record.rank) return ok_status();
  return make_error(ErrorCode::config,
                    "{}: is the record of a run of one rank; those of a run of several are "
                    "OUTPUT/rank-0/run.db and so on. Two runs are set side by side by: sluice "
                    "compare A B",
                    record.path);
}

// `records`: by rank.
Status check_of_one_run(const std::vector<RankRecord>& records) {
  const RankRecord& first = records.front();
  for (std::size_t i = 1; i < records.size(); ++i) {
    const RankRecord& record = records[i];
    if (record.info->meta_value("run_id") != first.info->meta_value("run_id")) {
      return make_error(
          ErrorCode::config,
          "{} and {} are records of two runs (run_id {} and {}); sluice compare sets two "
          "runs side by side",
          first.path, record.path, first.info->meta_value("run_id"),
          record.info->meta_value("run_id"));
    }
    if (record.rank != records[i - 1].rank) continue;
    return make_error(ErrorCode::config, "{} and {} are both the record of rank {}",
                      records[i - 1].path, record.path, record.rank);
  }
  const int count = number_of(*first.info, "ranks");
  constexpr std::size_t kNamedMax = 8;
  std::vector<int> missing;
  std::size_t at = 0;
  for (int rank = 0; rank < count && missing.size() < kNamedMax; ++rank) {
    if (at < records.size() && records[at].rank == rank) {
      ++at;
    } else {
      missing.push_back(rank);
    }
  }
  if (missing.empty()) return ok_status();
  return make_error(
      ErrorCode::config,
      "the run has {} ranks, and the record of rank {} is missing; name the run.db of "
      "each rank, or the run's output folder",
      count, fmt::join(missing, ", "));
}

// PATH itself, and the databases of the other processes.
std::vector<std::string> process_databases(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> databases;
  std::error_code error;
  for (fs::directory_iterator entry(path + ".processes", error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".db") databases.push_back(entry->path().string());
  }
  std::ranges::sort(databases);
  databases.insert(databases.begin(), path);
  return databases;
}

Status check_together(const RankRecord& first, const RankRecord& record) {
  const std::string recording = record.info->meta_value(rundb::kRecordedTogether);
  if (!record.info->meta_value(kMergedProcesses).empty()) {
    return make_error(ErrorCode::config, "{}: has all processes of its recording already",
                      record.path);
  }
  if (recording == first.info->meta_value(rundb::kRecordedTogether)) return ok_status();
  return make_error(ErrorCode::config,
                    "{} and {} were not recorded together; sluice compare sets two runs side by "
                    "side",
                    first.path, record.path);
}

}  // namespace

std::vector<std::string> rank_databases_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> databases;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path database = entry->path() / "run.db";
    if (!entry->path().filename().string().starts_with("rank-")) continue;
    if (std::error_code none; fs::exists(database, none)) databases.push_back(database.string());
  }
  std::ranges::sort(databases);
  return databases;
}

std::string database_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  const std::filesystem::path database = std::filesystem::path(path) / "run.db";
  return std::filesystem::exists(database, error) ? database.string() : path;
}

std::vector<std::string> databases_of(const std::vector<std::string>& paths) {
  std::vector<std::string> databases;
  for (const std::string& path : paths) {
    const std::vector<std::string> ranks = rank_databases_in(path);
    databases.insert(databases.end(), ranks.begin(), ranks.end());
    if (ranks.empty()) databases.push_back(database_of(path));
  }
  return databases;
}

Result<std::vector<RankRecord>> open_rank_records(const std::vector<std::string>& paths) {
  std::vector<RankRecord> records;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(RankRecord record, open_record(path));
    if (paths.size() == 1 && record.info->has_all_ranks()) return records_in(record);
    RETURN_IF_ERROR(check_one(record));
    records.push_back(std::move(record));
  }
  if (records.empty()) return make_error(ErrorCode::config, "no record of a rank is named");
  std::ranges::stable_sort(records, {}, &RankRecord::rank);
  RETURN_IF_ERROR(check_of_one_run(records));
  TimeNs bound_ns = 0;
  for (RankRecord& record : records) {
    RETURN_IF_ERROR(read_clock(record));
    bound_ns = std::max(bound_ns, record.clock.bound_ns());
  }
  // The worst for all of them, as a record that has all ranks says it.
  for (RankRecord& record : records) record.bound_ns = record.rank == 0 ? 0 : bound_ns;
  return records;
}

Result<std::vector<RankRecord>> open_process_records(const std::vector<std::string>& paths) {
  std::vector<RankRecord> records;
  for (const std::string& path : paths.size() == 1 ? process_databases(paths.front()) : paths) {
    ASSIGN_OR_RETURN(RankRecord record, open_record(path));
    record.rank = static_cast<int>(records.size());
    records.push_back(std::move(record));
    RETURN_IF_ERROR(check_together(records.front(), records.back()));
    const auto same = std::ranges::count_if(records, [&](const RankRecord& other) {
      std::error_code error;
      return std::filesystem::equivalent(other.path, path, error);
    });
    if (same > 1) return make_error(ErrorCode::config, "{}: is named twice", path);
  }
  if (records.empty()) return make_error(ErrorCode::config, "no record of a process is named");
  return records;
}

Result<std::vector<RankRecord>> rank_records_in(rundb::Reader& reader, const RunInfo& info) {
  const auto not_owned = [](const void* /*outlives it*/) {};
  RankRecord all;
  all.reader = std::shared_ptr<rundb::Reader>(&reader, not_owned);
  all.info = std::shared_ptr<const RunInfo>(&info, not_owned);
  ASSIGN_OR_RETURN(all.steps, reader.steps());
  return records_in(all);
}

Result<StepData> load_step(const RankRecord& record, const rundb::StepRow& step) {
  return load_step(*record.reader, *record.info, step,
                   record.info->has_all_ranks() ? record.rank : 0);
}

}  // namespace sluice::analyze
