// Keeps what must come quickly up with the file: see gui/data/run_feed.h.

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "gui/data/cells.h"
#include "gui/data/detail/feed_channel.h"
#include "gui/data/live_runs.h"
#include "gui/data/span_index.h"
#include "storage/rundb/query.h"

namespace sluice::gui::detail {
namespace {

constexpr TimeNs kReopenNs = 500'000'000;
constexpr TimeNs kLiveCheckNs = 500'000'000;
constexpr TimeNs kFactsPauseNs = 500'000'000;
// Pauses between two drawings of a live run's strip: a hundredth of a processor, within bounds.
constexpr TimeNs kMinimapPauseMinNs = 1'000'000'000;
constexpr TimeNs kMinimapPauseMaxNs = 10'000'000'000;
constexpr TimeNs kMinimapPauses = 100;  // of the time that the last one took
constexpr std::size_t kMinimapColumns = 800;

struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// All that is known of one file; begun anew when another one takes its place.
class Follower {
 public:
  explicit Follower(FeedChannel& channel) : channel_(&channel) {}

  void run() {
    Requests requests = channel_->requests();
    while (!requests.is_over) {
      const Status status = reader_ == nullptr ? open() : look(requests);
      if (!status.ok()) give_up(status.error().message());
      const TimeNs pause_ns = reader_ == nullptr ? kReopenNs
                              : lacks_room_      ? 0
                              : is_live_         ? channel_->options.poll_live_ns
                                                 : channel_->options.poll_finished_ns;
      const std::uint64_t seen = requests.number;
      requests = channel_->wait(seen + own_nudges_, pause_ns);
      own_nudges_ = 0;
    }
  }

 private:
  Status open() {
    struct stat file;
    if (::stat(channel_->path.c_str(), &file) == 0) identity_ = {file.st_dev, file.st_ino};
    file_number_ += 1;
    ASSIGN_OR_RETURN(reader_, rundb::Reader::open(channel_->path));
    steps_ = std::make_shared<const std::vector<rundb::StepRow>>();
    validations_ = std::make_shared<const std::vector<rundb::ValidationRow>>();
    validation_count_ = 0;
    index_ = SpanIndex();
    cache_ = SpanCache();
    counters_ = CounterStore();
    counters_seen_ = nullptr;
    data_version_ = -1;
    live_checked_ns_ = next_minimap_ns_ = 0;
    facts_ = nullptr;
    are_facts_old_ = false;
    timeline_made_ = {};
    lacks_room_ = false;
    chosen_made_ = 0;
    channel_->chosen.publish(nullptr);  // of the file before, where that number was another span's
    problem_.clear();
    return look(channel_->requests());
  }

  // What was read stays on the screen; the reason is shown with it.
  void give_up(const std::string& why) {
    reader_ = nullptr;
    if (problem_ == why) return;
    problem_ = why;
    const std::shared_ptr<const RunSnapshot> before = channel_->run.latest();
    auto now = before == nullptr ? std::make_shared<RunSnapshot>()
                                 : std::make_shared<RunSnapshot>(*before);
    now->problem = why;
    now->is_live = false;
    channel_->run.publish(std::move(now));
    channel_->options.wake();
  }

  // False: another one took its place.
  Result<bool> is_same_file() const {
    struct stat file;
    if (::stat(channel_->path.c_str(), &file) != 0)
      return make_error(ErrorCode::not_found,
                        "{}: the file is no longer there; what is shown was read before",
                        channel_->path);
    return FileIdentity{file.st_dev, file.st_ino} == identity_;
  }

  Status look(const Requests& requests) {
    ASSIGN_OR_RETURN(const bool is_same, is_same_file());
    if (!is_same) return open();
    ASSIGN_OR_RETURN(const bool has_more, read_new());
    RETURN_IF_ERROR(read_window(requests.timeline, has_more));
    // Once for all of it: each time is a frame.
    if (std::exchange(has_news_, false)) channel_->options.wake();
    RETURN_IF_ERROR(read_chosen(requests.chosen));
    return read_strip(has_more);
  }

  // First what is shown, then, if nothing else is asked for, the room around it. A live run is read
  // from where the last read ended, so both are read at once.
  Status read_window(const TimelineRequest& wanted, bool has_more) {
    if (wanted.end <= wanted.begin) return ok_status();
    const bool is_other = !(wanted == timeline_made_);
    const bool has_grown = has_more && wanted.end + (wanted.end - wanted.begin) > end_before_ns_;
    if (!is_other && !has_grown && !lacks_room_) return ok_status();
    const bool is_quick = is_other && !is_live_;
    ASSIGN_OR_RETURN(TimelineWindow window,
                     read_timeline(*reader_, *facts_, index_, cache_, wanted,
                                   is_quick ? TimelineRoom::none : TimelineRoom::wide));
    timeline_made_ = wanted;
    lacks_room_ = is_quick;
    channel_->timeline.publish(std::make_shared<const TimelineWindow>(std::move(window)));
    has_news_ = true;
    return ok_status();
  }

  Result<bool> read_new() {
    const TimeNs now_ns = monotonic_now_ns();
    const bool was_live = is_live_;
    if (live_checked_ns_ == 0 || now_ns - live_checked_ns_ >= kLiveCheckNs) {
      is_live_ = is_being_recorded(channel_->path);
      live_checked_ns_ = now_ns;
    }
    std::int64_t version = 0;
    RETURN_IF_ERROR(read_integer("PRAGMA data_version", version));
    const bool has_more = version != data_version_;
    const bool is_quiet = !has_more && was_live == is_live_;
    if (is_quiet && !(are_facts_old_ && now_ns - facts_read_ns_ >= kFactsPauseNs)) return false;
    if (has_more || are_facts_old_) {
      ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
      RETURN_IF_ERROR(read_all(now_ns));
      data_version_ = version;
    }
    publish();
    return has_more;
  }

  Status read_all(TimeNs now_ns) {
    RETURN_IF_ERROR(read_facts(now_ns));
    RETURN_IF_ERROR(read_steps());
    RETURN_IF_ERROR(read_validations());
    end_before_ns_ = index_.end_ts();
    RETURN_IF_ERROR(index_.update(*reader_));
    ASSIGN_OR_RETURN(const bool has_samples, counters_.update(*reader_));
    if (has_samples || counters_seen_ == nullptr) counters_seen_ = counters_.counters();
    return ok_status();
  }

  Status read_integer(std::string_view sql, std::int64_t& value) {
    return rundb::Query(*reader_).each_row_with(sql, {},
                                                [&value](std::span<const rundb::Cell> row) {
                                                  value = integer_of(row[0]);
                                                  return ok_status();
                                                });
  }

  // At once where there are names, tracks or changes of knobs that a picture lacks; figures, like
  // what was lost, with a pause.
  Status read_facts(TimeNs now_ns) {
    std::int64_t name_count = 0;
    RETURN_IF_ERROR(read_integer(
        "SELECT (SELECT ifnull(max(id), 0) FROM string) + (SELECT ifnull(max(id), 0) FROM track) + "
        "(SELECT count(*) FROM knob_change)",
        name_count));
    are_facts_old_ =
        facts_ != nullptr && name_count == name_count_ && now_ns - facts_read_ns_ < kFactsPauseNs;
    if (are_facts_old_) return ok_status();
    ASSIGN_OR_RETURN(RunFacts facts, load_run_facts(*reader_));
    facts_ = std::make_shared<const RunFacts>(std::move(facts));
    name_count_ = name_count;
    facts_read_ns_ = now_ns;
    return ok_status();
  }

  // The steps behind the last one; all, where a resumed run went back and wrote some again.
  Status read_steps() {
    std::int64_t stretch_count = 0;
    RETURN_IF_ERROR(read_integer("SELECT count(*) FROM clock_snapshot", stretch_count));
    const bool goes_on = stretch_count == stretch_count_ && !steps_->empty();
    stretch_count_ = stretch_count;
    ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> more,
                     reader_->steps_after(goes_on ? steps_->back().id : -1));
    if (more.empty() && goes_on) return ok_status();
    auto all = goes_on ? std::make_shared<std::vector<rundb::StepRow>>(*steps_)
                       : std::make_shared<std::vector<rundb::StepRow>>();
    all->insert(all->end(), more.begin(), more.end());
    steps_ = std::move(all);
    return ok_status();
  }

  // A resumed run may have taken some back and made as many anew, so the last row counts, too.
  Status read_validations() {
    std::int64_t count = 0;
    RETURN_IF_ERROR(read_integer(
        "SELECT count(*) + ifnull(max(rowid), 0) + ifnull(max(ts), 0) FROM validation", count));
    if (count == validation_count_) return ok_status();
    ASSIGN_OR_RETURN(std::vector<rundb::ValidationRow> rows, reader_->validations());
    validations_ = std::make_shared<const std::vector<rundb::ValidationRow>>(std::move(rows));
    validation_count_ = count;
    return ok_status();
  }

  void publish() {
    auto now = std::make_shared<RunSnapshot>();
    now->facts = facts_;
    now->steps = steps_;
    now->validations = validations_;
    now->counters = counters_seen_;
    now->is_live = is_live_;
    now->file = file_number_;
    now->span_count = index_.span_count();
    now->used_tracks = index_.used_tracks();
    now->begin_ts = begin_ts();
    now->end_ts = end_ts();
    now->recorder_share = recorder_share();
    channel_->run.publish(std::move(now));
    channel_->nudge();  // the student: there may be more to study
    own_nudges_ = 1;
    has_news_ = true;
  }

  TimeNs begin_ts() const {
    if (index_.is_empty()) return steps_->empty() ? 0 : steps_->front().ts;
    return steps_->empty() ? index_.begin_ts() : std::min(index_.begin_ts(), steps_->front().ts);
  }
  TimeNs end_ts() const {
    const TimeNs step_end = steps_->empty() ? 0 : steps_->back().ts + steps_->back().dur;
    return index_.is_empty() ? step_end : std::max(index_.end_ts(), step_end);
  }

  double recorder_share() const {
    for (const TrackFacts& track : facts_->tracks) {
      if (!track.is_counter || track.group != "recorder") continue;
      const auto samples = counters_seen_->by_track.find(track.id);
      if (samples != counters_seen_->by_track.end()) return samples->second->mean();
    }
    return -1;
  }

  Status read_chosen(std::int64_t span_id) {
    if (span_id == chosen_made_) return ok_status();
    chosen_made_ = span_id;
    if (span_id == 0) {
      channel_->chosen.publish(nullptr);
      return ok_status();
    }
    Result<ChosenSpan> chosen = read_span(*reader_, span_id);
    if (!chosen.ok() && chosen.error().code() != ErrorCode::not_found) return chosen.error();
    channel_->chosen.publish(chosen.ok() ? std::make_shared<const ChosenSpan>(std::move(*chosen))
                                         : nullptr);
    channel_->options.wake();
    return ok_status();
  }

  Status read_strip(bool has_more) {
    const TimeNs now_ns = monotonic_now_ns();
    is_strip_old_ = is_strip_old_ || has_more || next_minimap_ns_ == 0;
    if (!is_strip_old_ || now_ns < next_minimap_ns_) return ok_status();
    ASSIGN_OR_RETURN(Minimap minimap,
                     read_minimap(*reader_, *facts_, begin_ts(), end_ts(), kMinimapColumns));
    const TimeNs took_ns = monotonic_now_ns() - now_ns;
    next_minimap_ns_ =
        now_ns + std::clamp(took_ns * kMinimapPauses, kMinimapPauseMinNs, kMinimapPauseMaxNs);
    is_strip_old_ = false;
    channel_->minimap.publish(std::make_shared<const Minimap>(std::move(minimap)));
    channel_->options.wake();
    return ok_status();
  }

  FeedChannel* channel_;
  std::unique_ptr<rundb::Reader> reader_;
  FileIdentity identity_;
  std::uint64_t file_number_ = 0;
  std::string problem_;
  bool is_live_ = false;
  bool is_strip_old_ = false;
  bool are_facts_old_ = false;  // rows came since they were read
  bool lacks_room_ = false;     // the timeline: only what is shown was read
  bool has_news_ = false;       // published, and nobody woken yet
  TimeNs live_checked_ns_ = 0;
  TimeNs next_minimap_ns_ = 0;
  TimeNs facts_read_ns_ = 0;
  TimeNs end_before_ns_ = 0;
  std::int64_t data_version_ = -1;
  std::int64_t stretch_count_ = 0;
  std::int64_t validation_count_ = 0;  // and what else tells that table from what it was
  std::int64_t name_count_ = 0;        // of strings, tracks and changes of knobs
  std::int64_t chosen_made_ = 0;
  std::uint64_t own_nudges_ = 0;
  TimelineRequest timeline_made_;
  std::shared_ptr<const RunFacts> facts_;
  std::shared_ptr<const std::vector<rundb::StepRow>> steps_;
  std::shared_ptr<const std::vector<rundb::ValidationRow>> validations_;
  std::shared_ptr<const Counters> counters_seen_;
  SpanIndex index_;
  SpanCache cache_;
  CounterStore counters_;
};

}  // namespace

void follow(FeedChannel& channel) { Follower(channel).run(); }

}  // namespace sluice::gui::detail
