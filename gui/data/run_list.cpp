#include "gui/data/run_list.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "gui/data/cells.h"
#include "gui/data/run_path.h"
#include "profiler/analyze/rank_records.h"
#include "profiler/relay/far_run.h"
#include "profiler/runs/run_search.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {
namespace {

namespace fs = std::filesystem;

constexpr int kFoldersBelow = 2;
constexpr std::size_t kFoundMax = 10'000;  // of which the newest are listed

// "2026-11-25T12:39:44Z" as people read it, to the minute.
std::string minute_of(std::string utc) {
  if (utc.size() < 16) return utc;
  utc[10] = ' ';
  return utc.substr(0, 16);
}

Status read_summary(rundb::Reader& reader, RunSummary& summary) {
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader.snapshot());
  ASSIGN_OR_RETURN(const std::vector<rundb::MetaRow> meta, reader.meta());
  summary.name = "run without a name";
  for (const rundb::MetaRow& row : meta) {
    if (row.key == "name" && !row.value.empty()) summary.name = row.value;
    if (row.key == "started_utc") summary.started = minute_of(row.value);
    if (row.key == "clock") summary.is_simulated = row.value == "simulated";
  }
  return rundb::Query(reader).each_row(
      "SELECT (SELECT count(*) FROM step), (SELECT loss FROM step ORDER BY id DESC LIMIT 1)",
      [&summary](std::span<const rundb::Cell> row) {
        summary.step_count = integer_of(row[0]);
        if (std::holds_alternative<double>(row[1])) summary.loss = std::get<double>(row[1]);
        return ok_status();
      });
}

}  // namespace

RunSummary summary_of(const std::string& path) {
  RunSummary summary;
  summary.path = path;
  summary.loss = std::numeric_limits<double>::quiet_NaN();
  summary.is_far = relay::is_far_run(path);
  if (summary.is_far) {
    summary.name = "on a server";
    return summary;
  }
  summary.rank_count = analyze::rank_databases_in(path).size();
  const auto reader = rundb::Reader::open(analyze::databases_of({path}).front());
  if (!reader.ok() || !read_summary(**reader, summary).ok()) summary.name.clear();
  return summary;
}

std::vector<RunSummary> list_runs(const std::string& folder,
                                  const std::vector<std::string>& opened_before) {
  const std::string from_root = absolute_path(folder);
  const runs::FoundRuns found =
      runs::runs_below(from_root, {.folders_below = kFoldersBelow, .found_max = kFoundMax});
  std::set<std::string> paths(found.paths.begin(), found.paths.end());
  std::error_code error;
  for (const std::string& path : opened_before) {
    if (fs::is_regular_file(path, error) || !analyze::rank_databases_in(path).empty())
      paths.insert(path);
  }
  std::vector<std::pair<fs::file_time_type, std::string>> by_time;
  for (const std::string& path : paths) {
    by_time.emplace_back(fs::last_write_time(analyze::databases_of({path}).front(), error), path);
  }
  std::ranges::sort(by_time, std::greater<>());
  if (by_time.size() > kListedMax) by_time.resize(kListedMax);
  std::vector<RunSummary> listed;
  for (const auto& [time, path] : by_time) listed.push_back(summary_of(path));
  for (const std::string& path : opened_before) {
    if (relay::is_far_run(path)) listed.push_back(summary_of(path));
  }
  std::erase_if(listed, [](const RunSummary& run) { return run.name.empty(); });
  return listed;
}

std::vector<std::string> completions_of(const std::string& typed) {
  const std::size_t slash = typed.rfind('/');
  const std::string head = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  const std::string begun = typed.substr(head.size());
  std::vector<std::string> completions;
  std::error_code error;
  for (fs::directory_iterator entry(head.empty() ? "." : head, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begun) || (begun.empty() && name.starts_with('.'))) continue;
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      completions.push_back(head + name + "/");
    } else if (entry->path().extension() == ".db") {
      completions.push_back(head + name);
    }
  }
  std::ranges::sort(completions);
  return completions;
}

}  // namespace sluice::gui
