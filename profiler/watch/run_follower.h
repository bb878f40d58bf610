#pragma once
// A run's record, live or finished, read again and again: steps, facts and losses as they come.
// Read-only; between two looks it holds nothing of the file that its writer would wait for.
//
// Thread contract: one thread at a time.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "profiler/analyze/wall_clock.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/recording_now.h"

namespace sluice::watch {

using IsLive = std::function<bool(const std::string& database)>;

// The steps before one that had its settings, and what a figure of theirs was.
struct Before {
  std::int64_t first_step = 0;  // ids
  std::int64_t last_step = 0;
  double median = 0;
  double noise = 0;  // analyze::noise_of
};
// At least kBeforeMin, without those that settle (analyze::kSettlingSteps) and skipped ones; at
// most the last kBeforeMax, so that a long run is judged by what it was lately.
inline constexpr std::size_t kBeforeMin = 5;
inline constexpr std::size_t kBeforeMax = 100;

class RunFollower {
 public:
  // Errors: those of rundb::Reader.
  static Result<RunFollower> open(const std::string& path,
                                  IsLive is_live = rundb::is_being_recorded);

  // Reads what has come since. A record that another one replaced, and a run that a resume took
  // back, are read anew from where they differ. ErrorCode::not_found: the file is gone.
  Status look();

  const std::string& path() const { return path_; }
  rundb::Reader& reader() { return *reader_; }
  std::uint64_t file_number() const { return file_number_; }  // another one: another file
  // When the last look() began: all that was recorded until then is read.
  bool is_live() const { return was_live_; }
  const analyze::RunInfo& info() const { return info_; }
  const std::vector<rundb::StepRow>& steps() const { return steps_; }
  // Index in steps() of the first that the last look() brought; their count: none.
  std::size_t first_new() const { return first_new_; }
  std::int64_t lost_records() const { return lost_records_; }
  // When the recording, or after a resume its last stretch, began; 0: not known.
  TimeNs stretch_begin() const { return stretch_begin_; }
  // "2026-11-22 02:40:00" UTC of the run's time `ts`. To be asked in order of time.
  std::string time_text(TimeNs ts) { return calendar_text(clock_.realtime_of(ts)); }
  static std::string calendar_text(TimeNs realtime_ns);

  // The steps before steps()[index], or before the next one where `index` is their count, which is
  // not 0. None: too few.
  std::optional<Before> before(std::size_t index,
                               double (*figure)(const rundb::StepRow& step)) const;

 private:
  explicit RunFollower(std::string path, IsLive is_live)
      : path_(std::move(path)), finds_live_(std::move(is_live)) {}
  Status reopen();
  Status read();
  Status read_steps(std::int64_t stretch_count);
  std::size_t first_with_settings_of(std::size_t index) const;

  std::string path_;
  IsLive finds_live_;
  std::unique_ptr<rundb::Reader> reader_;
  std::uint64_t device_ = 0;  // which file it is
  std::uint64_t inode_ = 0;
  std::uint64_t file_number_ = 0;
  std::int64_t version_ = -1;  // SQLite's, of what was read
  std::int64_t stretch_count_ = 0;
  bool was_live_ = false;
  analyze::RunInfo info_;
  analyze::WallClock clock_{{}};
  std::vector<rundb::StepRow> steps_;
  std::size_t first_new_ = 0;
  std::int64_t lost_records_ = 0;
  TimeNs stretch_begin_ = 0;
};

}  // namespace sluice::watch
