#include "profiler/watch/run_follower.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "profiler/analyze/trend.h"
#include "storage/rundb/query.h"

namespace sluice::watch {
namespace {

Result<std::int64_t> integer_of(rundb::Reader& reader, std::string_view sql) {
  std::int64_t value = 0;
  RETURN_IF_ERROR(
      rundb::Query(reader).each_row_with(sql, {}, [&value](std::span<const rundb::Cell> row) {
        if (const auto* cell = std::get_if<std::int64_t>(&row[0])) value = *cell;
        return ok_status();
      }));
  return value;
}

}  // namespace

Result<RunFollower> RunFollower::open(const std::string& path, IsLive is_live) {
  RunFollower follower(path, std::move(is_live));
  RETURN_IF_ERROR(follower.reopen());
  return follower;
}

Status RunFollower::reopen() {
  struct stat file;
  if (::stat(path_.c_str(), &file) == 0) {
    device_ = file.st_dev;
    inode_ = file.st_ino;
  }
  ASSIGN_OR_RETURN(reader_, rundb::Reader::open(path_));
  file_number_ += 1;
  version_ = -1;
  first_new_ = 0;
  stretch_count_ = 0;
  steps_.clear();
  return ok_status();
}

Status RunFollower::look() {
  struct stat file;
  if (::stat(path_.c_str(), &file) != 0)
    return make_error(ErrorCode::not_found, "{}: the file is no longer there", path_);
  if (file.st_dev != device_ || file.st_ino != inode_) RETURN_IF_ERROR(reopen());
  was_live_ = finds_live_(path_);
  first_new_ = steps_.size();
  ASSIGN_OR_RETURN(const std::int64_t version, integer_of(*reader_, "PRAGMA data_version"));
  if (version == version_) return ok_status();
  RETURN_IF_ERROR(read());
  version_ = version;
  return ok_status();
}

Status RunFollower::read() {
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
  ASSIGN_OR_RETURN(info_, analyze::load_run_info(*reader_));
  ASSIGN_OR_RETURN(clock_, analyze::WallClock::of_run(*reader_));
  ASSIGN_OR_RETURN(stretch_begin_, reader_->stretch_begin());
  ASSIGN_OR_RETURN(const std::int64_t stretches,
                   integer_of(*reader_, "SELECT count(*) FROM clock_snapshot"));
  RETURN_IF_ERROR(read_steps(stretches));
  ASSIGN_OR_RETURN(const std::vector<rundb::StatRow> losses, reader_->losses());
  lost_records_ = 0;
  for (const rundb::StatRow& loss : losses) lost_records_ += loss.value;
  return ok_status();
}

// Those behind the last one; after a resume all of them, of which the first that differ are new.
Status RunFollower::read_steps(std::int64_t stretch_count) {
  const bool goes_on = stretch_count == stretch_count_ && !steps_.empty();
  stretch_count_ = stretch_count;
  if (goes_on) {
    ASSIGN_OR_RETURN(const auto more, reader_->steps_after(steps_.back().id));
    steps_.insert(steps_.end(), more.begin(), more.end());
    return ok_status();
  }
  ASSIGN_OR_RETURN(auto all, reader_->steps());
  const auto is_same = [](const rundb::StepRow& a, const rundb::StepRow& b) {
    return a.id == b.id && a.ts == b.ts;
  };
  first_new_ =
      static_cast<std::size_t>(std::ranges::mismatch(all, steps_, is_same).in1 - all.begin());
  steps_ = std::move(all);
  return ok_status();
}

std::string RunFollower::calendar_text(TimeNs realtime_ns) {
  const auto seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
  std::tm parts = {};
  char text[64] = "";
  if (gmtime_r(&seconds, &parts) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

// A change of a knob, and a stretch of the recording, begin other settings.
std::size_t RunFollower::first_with_settings_of(std::size_t index) const {
  const rundb::StepRow& step = steps_[std::min(index, steps_.size() - 1)];
  std::int64_t first_id = steps_.front().id;
  for (const rundb::KnobChangeRow& change : info_.knob_changes) {
    if (change.step_id <= step.id) first_id = std::max(first_id, change.step_id);
  }
  auto first = std::ranges::lower_bound(steps_, first_id, {}, &rundb::StepRow::id);
  if (step.ts >= stretch_begin_) {
    const auto at = steps_.begin() + static_cast<std::ptrdiff_t>(index);
    first =
        std::find_if(first, at, [&](const rundb::StepRow& of) { return of.ts >= stretch_begin_; });
  }
  return static_cast<std::size_t>(first - steps_.begin());
}

std::optional<Before> RunFollower::before(std::size_t index,
                                          double (*figure)(const rundb::StepRow& step)) const {
  const std::size_t first = first_with_settings_of(index) + analyze::kSettlingSteps;
  std::vector<double> values;
  Before before{.first_step = 0, .last_step = 0, .median = 0, .noise = 0};
  for (std::size_t i = index; i-- > first && values.size() < kBeforeMax;) {
    if (steps_[i].skipped || !(figure(steps_[i]) == figure(steps_[i]))) continue;
    if (values.empty()) before.last_step = steps_[i].id;
    before.first_step = steps_[i].id;
    values.push_back(figure(steps_[i]));
  }
  if (values.size() < kBeforeMin) return std::nullopt;
  before.median = analyze::median_of(values);
  before.noise = analyze::noise_of(values, before.median);
  return before;
}

}  // namespace sluice::watch
