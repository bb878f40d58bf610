#include "gui/data/opening.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/utc_time.h"
#include "gui/data/live_runs.h"
#include "gui/data/run_path.h"
#include "profiler/report/merged_record.h"

namespace sluice::gui {
namespace {

namespace fs = std::filesystem;

constexpr double kWakeShare = 0.01;  // of the progress that is worth a frame
constexpr std::chrono::milliseconds kFarPoll{20};

// Several databases, or a folder of several ranks: to be merged.
bool are_of_ranks(const std::vector<std::string>& paths) {
  return paths.size() > 1 || !analyze::rank_databases_in(paths.front()).empty();
}

// OUTPUT of OUTPUT/rank-0/run.db and so on, where these are all that it has.
std::string folder_of(std::vector<std::string> databases) {
  const std::string folder = fs::path(databases.front()).parent_path().parent_path().string();
  std::ranges::sort(databases);
  return analyze::rank_databases_in(folder) == databases ? folder : "";
}

Result<std::vector<analyze::RankRecord>> open_ranks(const std::vector<std::string>& databases,
                                                    MergedRanks& ranks) {
  ranks.folder = folder_of(databases);
  ranks.was_live = std::ranges::any_of(databases, is_being_recorded);
  ranks.read_at = utc_now().substr(11, 8);
  auto records = analyze::open_rank_records(databases);
  if (!records.ok()) return records.error();
  for (const analyze::RankRecord& record : *records) ranks.databases.push_back(record.path);
  return records;
}

}  // namespace

Opening::Opening(std::vector<std::string> paths, std::shared_ptr<const report::MergedFile> into,
                 FarChoice far, std::function<void()> wake)
    : paths_(std::move(paths)),
      into_(std::move(into)),
      far_(std::move(far)),
      wake_(std::move(wake)) {
  work_ = std::async(std::launch::async, [this] {
    result_.publish(std::make_shared<const Opened>(open()));
    wake_();
  });
}

Opening::~Opening() {
  stop_.request_stop();
  work_.wait();
}

bool Opening::is_far() const { return relay::is_far_run(paths_.front()); }

// There is something to show once the first turn is in the copy.
Opened Opening::open_far() {
  if (paths_.size() > 1) return {.problem = "runs on a server are opened one by one"};
  auto run = FollowedRun::begin(paths_.front(), far_, wake_);
  if (!run.ok()) return {.problem = run.error().message()};
  while (!stop_.stop_requested()) {
    const std::shared_ptr<const FarLine> line = (*run)->line();
    if (line != nullptr && !line->problem.empty()) return {.problem = line->problem};
    if (line != nullptr && line->state.has_copy)
      return {.database = (*run)->database(), .far = *std::move(run)};
    std::this_thread::sleep_for(kFarPoll);
  }
  return {.problem = "it is no longer wanted"};
}

Opened Opening::open() {
  if (is_far()) return open_far();
  const std::vector<std::string> databases = analyze::databases_of(paths_);
  if (!are_of_ranks(paths_)) return {.database = databases.front()};
  auto ranks = std::make_shared<MergedRanks>();
  const auto records = open_ranks(databases, *ranks);
  if (!records.ok()) return {.problem = records.error().message()};
  ranks->file = into_;
  if (ranks->file == nullptr) {
    auto file = report::MergedFile::create();
    if (!file.ok()) return {.problem = file.error().message()};
    ranks->file = std::make_shared<const report::MergedFile>(*std::move(file));
  }
  const auto note_share = [this](double share) {
    if (share < share_ + kWakeShare) return;
    share_ = share;
    wake_();
  };
  const auto counts = report::merge_records(
      *records, ranks->file->path(), report::IfExists::replace, note_share, stop_.get_token());
  if (!counts.ok()) return {.problem = counts.error().message()};
  return {.database = ranks->file->path(), .ranks = std::move(ranks)};
}

}  // namespace sluice::gui
