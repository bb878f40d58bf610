// Keeps what must come quickly up with the file: see gui/data/run_feed.h.

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "gui/data/cells.h"
#include "gui/data/counter_store.h"
#include "gui/data/detail/feed_channel.h"
#include "gui/data/live_runs.h"
#include "gui/data/span_cache.h"
#include "gui/data/span_index.h"
#include "gui/data/span_lookup.h"
#include "gui/data/timeline_window.h"
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

Status read_integer(rundb::Reader& reader, std::string_view sql, std::int64_t& value) {
  return rundb::Query(reader).each_row_with(sql, {}, [&value](std::span<const rundb::Cell> row) {
    value = integer_of(row[0]);
    return ok_status();
  });
}

// Which file lies at a path, and whether a run is still being recorded into it.
class WatchedFile {
 public:
  explicit WatchedFile(const std::string& path) : path_(path) {}

  // Whatever lies there now.
  void take() {
    struct stat file;
    if (::stat(path_.c_str(), &file) == 0) identity_ = {file.st_dev, file.st_ino};
    number_ += 1;
    live_checked_ns_ = 0;
  }
  // False: another one took its place.
  Result<bool> is_same() const {
    struct stat file;
    if (::stat(path_.c_str(), &file) != 0)
      return make_error(ErrorCode::not_found,
                        "{}: the file is no longer there; what is shown was read before", path_);
    return Identity{file.st_dev, file.st_ino} == identity_;
  }
  void look_whether_live(TimeNs now_ns) {
    if (live_checked_ns_ != 0 && now_ns - live_checked_ns_ < kLiveCheckNs) return;
    is_live_ = is_being_recorded(path_);
    live_checked_ns_ = now_ns;
  }

  bool is_live() const { return is_live_; }
  std::uint64_t number() const { return number_; }  // another one: another file

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };

  const std::string& path_;
  Identity identity_;
  std::uint64_t number_ = 0;
  TimeNs live_checked_ns_ = 0;
  bool is_live_ = false;
};

// Names, tracks, changes of knobs and figures of the run. Read at once where there are names,
// tracks or changes that a picture lacks; figures, like what was lost, with a pause.
class FactsCopy {
 public:
  Status update(rundb::Reader& reader, TimeNs now_ns) {
    std::int64_t name_count = 0;
    RETURN_IF_ERROR(read_integer(
        reader,
        "SELECT (SELECT ifnull(max(id), 0) FROM string) + (SELECT ifnull(max(id), 0) FROM track) + "
        "(SELECT count(*) FROM knob_change)",
        name_count));
    is_old_ = facts_ != nullptr && name_count == name_count_ && now_ns - read_ns_ < kFactsPauseNs;
    if (is_old_) return ok_status();
    ASSIGN_OR_RETURN(RunFacts facts, load_run_facts(reader));
    facts_ = std::make_shared<const RunFacts>(std::move(facts));
    name_count_ = name_count;
    read_ns_ = now_ns;
    return ok_status();
  }

  // Rows came since they were read.
  bool is_old() const { return is_old_; }
  bool is_due(TimeNs now_ns) const { return is_old_ && now_ns - read_ns_ >= kFactsPauseNs; }
  const std::shared_ptr<const RunFacts>& facts() const { return facts_; }

 private:
  std::shared_ptr<const RunFacts> facts_;
  std::int64_t name_count_ = 0;  // of strings, tracks and changes of knobs
  TimeNs read_ns_ = 0;
  bool is_old_ = false;
};

// Steps and validations, of which only the new ones are read where that is enough.
class StepsCopy {
 public:
  Status update(rundb::Reader& reader) {
    RETURN_IF_ERROR(read_steps(reader));
    return read_validations(reader);
  }

  const std::shared_ptr<const std::vector<rundb::StepRow>>& steps() const { return steps_; }
  const std::shared_ptr<const std::vector<rundb::ValidationRow>>& validations() const {
    return validations_;
  }

 private:
  // The steps behind the last one; all, where a resumed run went back and wrote some again.
  Status read_steps(rundb::Reader& reader) {
    std::int64_t stretch_count = 0;
    RETURN_IF_ERROR(read_integer(reader, "SELECT count(*) FROM clock_snapshot", stretch_count));
    const bool goes_on = stretch_count == stretch_count_ && !steps_->empty();
    stretch_count_ = stretch_count;
    ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> more,
                     reader.steps_after(goes_on ? steps_->back().id : -1));
    if (more.empty() && goes_on) return ok_status();
    auto all = goes_on ? std::make_shared<std::vector<rundb::StepRow>>(*steps_)
                       : std::make_shared<std::vector<rundb::StepRow>>();
    all->insert(all->end(), more.begin(), more.end());
    steps_ = std::move(all);
    return ok_status();
  }

  // A resumed run may have taken some back and made as many anew, so the last row counts, too.
  Status read_validations(rundb::Reader& reader) {
    std::int64_t mark = 0;
    RETURN_IF_ERROR(read_integer(
        reader, "SELECT count(*) + ifnull(max(rowid), 0) + ifnull(max(ts), 0) FROM validation",
        mark));
    if (mark == validation_mark_) return ok_status();
    ASSIGN_OR_RETURN(std::vector<rundb::ValidationRow> rows, reader.validations());
    validations_ = std::make_shared<const std::vector<rundb::ValidationRow>>(std::move(rows));
    validation_mark_ = mark;
    return ok_status();
  }

  std::shared_ptr<const std::vector<rundb::StepRow>> steps_ =
      std::make_shared<const std::vector<rundb::StepRow>>();
  std::shared_ptr<const std::vector<rundb::ValidationRow>> validations_ =
      std::make_shared<const std::vector<rundb::ValidationRow>>();
  std::int64_t stretch_count_ = 0;
  std::int64_t validation_mark_ = 0;  // by which that table is known from what it was
};

// The copy of one file; begun anew when another one takes its place.
struct FileCopy {
  FactsCopy facts;
  StepsCopy steps;
  SpanIndex index;
  SpanCache cache;
  CounterStore counters;
  std::shared_ptr<const Counters> counters_seen;
  std::int64_t version = -1;     // SQLite's, of what was read
  TimeNs end_before_ts = 0;      // of the spans before the last read
  std::int64_t chosen_made = 0;  // the span that was read last
  TimelineRequest timeline_made;
  bool lacks_room = false;  // the timeline: only what is shown was read

  Status update(rundb::Reader& reader, TimeNs now_ns) {
    RETURN_IF_ERROR(facts.update(reader, now_ns));
    RETURN_IF_ERROR(steps.update(reader));
    end_before_ts = index.end_ts();
    RETURN_IF_ERROR(index.update(reader));
    ASSIGN_OR_RETURN(const bool has_samples, counters.update(reader));
    if (has_samples || counters_seen == nullptr) counters_seen = counters.counters();
    return ok_status();
  }

  TimeNs begin_ts() const {
    const std::vector<rundb::StepRow>& rows = *steps.steps();
    if (index.is_empty()) return rows.empty() ? 0 : rows.front().ts;
    return rows.empty() ? index.begin_ts() : std::min(index.begin_ts(), rows.front().ts);
  }
  TimeNs end_ts() const {
    const std::vector<rundb::StepRow>& rows = *steps.steps();
    const TimeNs step_end = rows.empty() ? 0 : rows.back().ts + rows.back().dur;
    return index.is_empty() ? step_end : std::max(index.end_ts(), step_end);
  }
  double recorder_share() const {
    for (const TrackFacts& track : facts.facts()->tracks) {
      if (!track.is_counter || track.group != "recorder") continue;
      const auto samples = counters_seen->by_track.find(track.id);
      if (samples != counters_seen->by_track.end()) return samples->second->mean();
    }
    return -1;
  }
};

// When the strip of all steps is drawn anew: a live run's with pauses, longer ones where it takes
// long.
class StripPause {
 public:
  void note_more() { is_old_ = true; }
  bool is_due(TimeNs now_ns) const { return is_old_ && now_ns >= next_ns_; }
  void note_drawn(TimeNs begin_ns, TimeNs end_ns) {
    next_ns_ = begin_ns + std::clamp((end_ns - begin_ns) * kMinimapPauses, kMinimapPauseMinNs,
                                     kMinimapPauseMaxNs);
    is_old_ = false;
  }

 private:
  bool is_old_ = true;
  TimeNs next_ns_ = 0;
};

class Follower {
 public:
  explicit Follower(FeedChannel& channel) : channel_(&channel), file_(channel.path) {}

  void run() {
    Requests requests = channel_->requests();
    while (!requests.is_over) {
      const Status status = reader_ == nullptr ? open() : look(requests);
      if (!status.ok()) give_up(status.error().message());
      const TimeNs pause_ns = reader_ == nullptr ? kReopenNs
                              : copy_.lacks_room ? 0
                              : file_.is_live()  ? channel_->options.poll_live_ns
                                                 : channel_->options.poll_finished_ns;
      const std::uint64_t seen = requests.number;
      requests = channel_->wait(seen + own_nudges_, pause_ns);
      own_nudges_ = 0;
    }
  }

 private:
  Status open() {
    file_.take();
    ASSIGN_OR_RETURN(reader_, rundb::Reader::open(channel_->path));
    copy_ = FileCopy();
    strip_ = StripPause();
    channel_->chosen.publish(nullptr);  // of the file before, where that number was another span's
    problem_.clear();
    return look(channel_->requests());
  }

  // The copy stays on the screen; the reason is shown with it.
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

  Status look(const Requests& requests) {
    ASSIGN_OR_RETURN(const bool is_same, file_.is_same());
    if (!is_same) return open();
    ASSIGN_OR_RETURN(const bool has_more, read_new());
    RETURN_IF_ERROR(read_window(requests.timeline, has_more));
    // Once for all of it: each time is a frame.
    if (std::exchange(has_news_, false)) channel_->options.wake();
    RETURN_IF_ERROR(read_chosen(requests.chosen));
    return read_strip(has_more);
  }

  Result<bool> read_new() {
    const TimeNs now_ns = monotonic_now_ns();
    const bool was_live = file_.is_live();
    file_.look_whether_live(now_ns);
    std::int64_t version = 0;
    RETURN_IF_ERROR(read_integer(*reader_, "PRAGMA data_version", version));
    const bool has_more = version != copy_.version;
    const bool is_quiet = !has_more && was_live == file_.is_live();
    if (is_quiet && !copy_.facts.is_due(now_ns)) return false;
    if (has_more || copy_.facts.is_old()) {
      ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_->snapshot());
      RETURN_IF_ERROR(copy_.update(*reader_, now_ns));
      copy_.version = version;
    }
    publish();
    return has_more;
  }

  void publish() {
    auto now = std::make_shared<RunSnapshot>();
    now->facts = copy_.facts.facts();
    now->steps = copy_.steps.steps();
    now->validations = copy_.steps.validations();
    now->counters = copy_.counters_seen;
    now->is_live = file_.is_live();
    now->file = file_.number();
    now->span_count = copy_.index.span_count();
    now->used_tracks = copy_.index.used_tracks();
    now->begin_ts = copy_.begin_ts();
    now->end_ts = copy_.end_ts();
    now->recorder_share = copy_.recorder_share();
    channel_->run.publish(std::move(now));
    channel_->nudge();  // the student: there may be more to study
    own_nudges_ = 1;
    has_news_ = true;
  }

  // First what is shown, then, if nothing else is asked for, the room around it. A live run is read
  // from where the last read ended, so both are read at once.
  Status read_window(const TimelineRequest& wanted, bool has_more) {
    if (wanted.end <= wanted.begin) return ok_status();
    const bool is_other = !(wanted == copy_.timeline_made);
    const bool has_grown =
        has_more && wanted.end + (wanted.end - wanted.begin) > copy_.end_before_ts;
    if (!is_other && !has_grown && !copy_.lacks_room) return ok_status();
    const bool is_quick = is_other && !file_.is_live();
    ASSIGN_OR_RETURN(TimelineWindow window,
                     read_timeline(*reader_, *copy_.facts.facts(), copy_.index, copy_.cache, wanted,
                                   is_quick ? TimelineRoom::none : TimelineRoom::wide));
    copy_.timeline_made = wanted;
    copy_.lacks_room = is_quick;
    channel_->timeline.publish(std::make_shared<const TimelineWindow>(std::move(window)));
    has_news_ = true;
    return ok_status();
  }

  Status read_chosen(std::int64_t span_id) {
    if (span_id == copy_.chosen_made) return ok_status();
    copy_.chosen_made = span_id;
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
    if (has_more) strip_.note_more();
    if (!strip_.is_due(now_ns)) return ok_status();
    ASSIGN_OR_RETURN(Minimap minimap, read_minimap(*reader_, *copy_.facts.facts(), copy_.begin_ts(),
                                                   copy_.end_ts(), kMinimapColumns));
    strip_.note_drawn(now_ns, monotonic_now_ns());
    channel_->minimap.publish(std::make_shared<const Minimap>(std::move(minimap)));
    channel_->options.wake();
    return ok_status();
  }

  FeedChannel* channel_;
  WatchedFile file_;
  std::unique_ptr<rundb::Reader> reader_;  // null: the file cannot be read now
  FileCopy copy_;
  StripPause strip_;
  std::string problem_;
  bool has_news_ = false;  // published, and nobody woken yet
  std::uint64_t own_nudges_ = 0;
};

}  // namespace

void follow(FeedChannel& channel) { Follower(channel).run(); }

}  // namespace sluice::gui::detail
