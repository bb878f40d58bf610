#include "profiler/report/chrome_trace.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "profiler/analyze/run_data.h"
#include "profiler/report/detail/cells.h"
#include "profiler/report/detail/lanes.h"
#include "profiler/report/detail/span_stream.h"
#include "storage/rundb/query.h"

namespace sluice::report {
namespace {

constexpr std::size_t kPlacesMax = 1 << 19;
constexpr int kStepsPid = 1;
constexpr int kStepsTid = 1;

std::string json_text(std::string_view text) {
  using ErrorHandler = nlohmann::json::error_handler_t;
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, ErrorHandler::replace);
}

// Microseconds with all of the nanoseconds: a double would lose some of a long uptime.
std::string micros(TimeNs ns) {
  const char* sign = ns < 0 ? "-" : "";
  const TimeNs size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
}

class ChromeTrace {
 public:
  ChromeTrace(rundb::Reader& reader, OutputFile& file, const RunPart& part,
              const OnProgress& on_progress)
      : reader_(reader), file_(file), part_(part), on_progress_(on_progress) {}

  Result<ChromeTraceCounts> write() {
    ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader_.snapshot());
    ASSIGN_OR_RETURN(info_, analyze::load_run_info(reader_));
    RETURN_IF_ERROR(write_head());
    RETURN_IF_ERROR(write_processes());
    RETURN_IF_ERROR(write_steps());
    RETURN_IF_ERROR(write_validations());
    RETURN_IF_ERROR(write_knob_changes());
    RETURN_IF_ERROR(write_spans());
    RETURN_IF_ERROR(write_counters());
    RETURN_IF_ERROR(file_.write("\n]}\n"));
    return counts_;
  }

 private:
  // Where a span is drawn, for the arrows that begin there.
  struct Place {
    int pid = 0;
    std::int64_t tid = 0;
    TimeNs ts = 0;
    TimeNs dur = 0;
  };

  Status event(const std::string& json) {
    RETURN_IF_ERROR(file_.write(is_first_ ? "\n" : ",\n"));
    is_first_ = false;
    return file_.write(json);
  }

  Status write_head() {
    std::string other;
    for (const rundb::MetaRow& row : info_.meta) {
      if (row.key == "model_text" || row.key == "platform_text") continue;  // whole files
      other += fmt::format("{}{}:{}", other.empty() ? "" : ",", json_text(row.key),
                           json_text(row.value));
    }
    return file_.write(
        fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{{}}},\"traceEvents\":[", other));
  }

  // Every event has pid, tid and ts, also where the format does without.
  Status metadata(const char* what, int pid, std::int64_t tid, const std::string& args) {
    return event(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"ts":0,"args":{{{}}}}})",
                             what, pid, tid, args));
  }

  Status write_process(int pid, const std::string& name) {
    RETURN_IF_ERROR(metadata("process_name", pid, 0, "\"name\":" + json_text(name)));
    return metadata("process_sort_index", pid, 0, fmt::format("\"sort_index\":{}", pid));
  }

  // A process for the steps and for each track that stands under none.
  Status write_processes() {
    const std::string mode = info_.mode.line();
    RETURN_IF_ERROR(write_process(kStepsPid, "steps" + (mode.empty() ? "" : " (" + mode + ")")));
    RETURN_IF_ERROR(metadata("thread_name", kStepsPid, kStepsTid, R"("name":"step")"));
    std::map<std::int64_t, const analyze::TrackInfo*> by_id;
    for (const auto& [id, track] : info_.tracks) by_id[id] = &track;
    int pid = kStepsPid;
    for (const auto& [id, track] : by_id) {
      if (info_.tracks.contains(track->parent_id)) continue;
      pid_of_track_[id] = ++pid;
      RETURN_IF_ERROR(write_process(pid, track->name));
    }
    for (const auto& [id, track] : by_id) {
      const analyze::TrackInfo* root = track;
      // A tree in a file that nobody wrote may be none: no longer a way than there are tracks.
      for (std::size_t i = 0; i < by_id.size() && by_id.contains(root->parent_id); ++i)
        root = by_id[root->parent_id];
      const auto known = pid_of_track_.find(root->id);
      pid_of_track_[id] = known == pid_of_track_.end() ? kStepsPid : known->second;
    }
    return ok_status();
  }

  Status write_steps() {
    ASSIGN_OR_RETURN(const std::vector<rundb::StepRow> steps, reader_.steps());
    for (const rundb::StepRow& step : steps) {
      if (part_.has_step(step.id)) RETURN_IF_ERROR(write_step(step));
    }
    return ok_status();
  }

  Status write_step(const rundb::StepRow& step) {
    const std::int64_t number = step.id + 1;
    RETURN_IF_ERROR(event(fmt::format(
        R"({{"ph":"X","name":"step {}","cat":"step","pid":{},"tid":{},"ts":{},"dur":{},)"
        R"("args":{{"step":{},"loss":{},"lr":{},"tokens":{},"skipped":{}}}}})",
        number, kStepsPid, kStepsTid, micros(step.ts), micros(step.dur), number,
        number_or_null(step.loss), number_or_null(step.lr), step.tokens, step.skipped)));
    // A line through all tracks.
    return event(
        fmt::format(R"({{"ph":"i","name":"step {} begins","cat":"step","s":"g","pid":{},"tid":{},)"
                    R"("ts":{}}})",
                    number, kStepsPid, kStepsTid, micros(step.ts)));
  }

  // A JSON number is finite.
  static std::string number_or_null(double value) {
    return std::isfinite(value) ? fmt::format("{}", value) : "null";
  }

  // A counter of the steps' process.
  Status write_validations() {
    ASSIGN_OR_RETURN(const std::vector<rundb::ValidationRow> rows, reader_.validations());
    for (const rundb::ValidationRow& row : rows) {
      if (!part_.has_step(row.step_id) || !std::isfinite(row.loss)) continue;
      RETURN_IF_ERROR(event(fmt::format(
          R"({{"ph":"C","name":"validation loss","pid":{},"tid":0,"ts":{},"args":{{"value":{}}}}})",
          kStepsPid, micros(row.ts), row.loss)));
    }
    return ok_status();
  }

  // Lines through all tracks, too.
  Status write_knob_changes() {
    for (const rundb::KnobChangeRow& change : info_.knob_changes) {
      if (part_.has_change(change)) RETURN_IF_ERROR(write_knob_change(change));
    }
    return ok_status();
  }

  Status write_knob_change(const rundb::KnobChangeRow& change) {
    const std::string name =
        fmt::format("{} {} -> {}", change.knob, change.old_value, change.new_value);
    std::string args = fmt::format(R"("knob":{},"old":{},"new":{},"who":{})",
                                   json_text(change.knob), json_text(change.old_value),
                                   json_text(change.new_value), json_text(change.who));
    if (change.step_id >= 0) args += fmt::format(R"(,"step":{})", change.step_id + 1);
    return event(fmt::format(
        R"({{"ph":"i","name":{},"cat":"knob","s":"g","pid":{},"tid":{},"ts":{},"args":{{{}}}}})",
        json_text(name), kStepsPid, kStepsTid, micros(change.ts), args));
  }

  Status write_spans() {
    ASSIGN_OR_RETURN(detail::SpanStream stream, detail::SpanStream::open(reader_, part_));
    std::vector<rundb::SpanRow> spans;
    while (true) {
      ASSIGN_OR_RETURN(const bool has_more, stream.next(spans));
      if (!has_more) break;
      for (const rundb::SpanRow& span : spans) RETURN_IF_ERROR(write_span(span));
      RETURN_IF_ERROR(write_flows(spans));
      if (on_progress_) on_progress_(stream.share_done());
    }
    counts_.flows_left_out += static_cast<std::int64_t>(unplaced_.size());
    // No place was forgotten, so those are flows from outside of the part.
    if (!part_.is_whole() && counts_.spans <= static_cast<std::int64_t>(kPlacesMax))
      counts_.flows_left_out = 0;
    return ok_status();
  }

  Status write_span(const rundb::SpanRow& span) {
    const auto name = info_.strings.find(span.name_id);
    const auto track = info_.tracks.find(span.track_id);
    if (name == info_.strings.end() || track == info_.tracks.end()) {
      return make_error(ErrorCode::corrupt, "span {} names a track or string that has no row",
                        span.id);
    }
    const std::size_t lane = lanes_[span.track_id].place(span.ts, span.dur);
    ASSIGN_OR_RETURN(const std::int64_t tid, tid_of(track->second, lane));
    const int pid = pid_of_track_[span.track_id];
    std::string args = fmt::format(R"("span":{},"waited_us":{})", span.id,
                                   micros(std::max<TimeNs>(0, span.ts - span.submit_ts)));
    if (span.step_id >= 0) args += fmt::format(R"(,"step":{})", span.step_id + 1);
    if (span.subgroup_id >= 0) args += fmt::format(R"(,"subgroup":{})", span.subgroup_id);
    if (span.device_id >= 0) args += fmt::format(R"(,"device":{})", span.device_id);
    if (span.layer_id >= 0) args += fmt::format(R"(,"layer":{})", span.layer_id);
    if (!track->second.links.empty() || span.bytes > 0) {
      args += fmt::format(R"(,"bytes":{},"padding_bytes":{})", span.bytes, span.padding_bytes);
    }
    if (span.status != rundb::SpanStatus::ok) {
      args += span.status == rundb::SpanStatus::failed ? R"(,"status":"failed")"
                                                       : R"(,"status":"cancelled")";
    }
    counts_.spans += 1;
    remember(span.id, {pid, tid, span.ts, span.dur});
    return event(fmt::format(
        R"({{"ph":"X","name":{},"cat":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
        json_text(name->second), json_text(track->second.kind), pid, tid, micros(span.ts),
        micros(span.dur), args));
  }

  // A thread for each lane, named when it is first used.
  Result<std::int64_t> tid_of(const analyze::TrackInfo& track, std::size_t lane) {
    const auto [found, is_new] = tids_.try_emplace({track.id, lane}, next_tid_);
    if (!is_new) return found->second;
    const std::int64_t tid = next_tid_++;
    const int pid = pid_of_track_[track.id];
    const std::string name = lane == 0 ? track.name : fmt::format("{} ({})", track.name, lane + 1);
    RETURN_IF_ERROR(metadata("thread_name", pid, tid, "\"name\":" + json_text(name)));
    RETURN_IF_ERROR(metadata(
        "thread_sort_index", pid, tid,
        fmt::format("\"sort_index\":{}", track.id * 1000 + static_cast<std::int64_t>(lane))));
    return tid;
  }

  void remember(std::int64_t span_id, const Place& place) {
    places_[span_id] = place;
    place_order_.push_back(span_id);
    if (place_order_.size() <= kPlacesMax) return;
    places_.erase(place_order_.front());
    place_order_.pop_front();
  }

  // Arrows into these spans. One begins in the last nanosecond of the cause and ends where the
  // effect begins: both inside their slices, which is what binds them.
  Status write_flows(std::vector<rundb::SpanRow>& spans) {
    // A cause that begins after its effect is in the window after it, if it is anywhere.
    std::vector<std::pair<std::int64_t, std::int64_t>> of_last_window = std::move(unplaced_);
    unplaced_.clear();
    for (const auto& [from_span, to_span] : of_last_window)
      RETURN_IF_ERROR(write_flow(from_span, to_span));
    counts_.flows_left_out += static_cast<std::int64_t>(unplaced_.size());
    unplaced_.clear();
    std::ranges::sort(spans, {}, &rundb::SpanRow::id);
    for (std::size_t i = 0; i < spans.size();) {
      std::size_t last = i;
      while (last + 1 < spans.size() && spans[last + 1].id == spans[last].id + 1) ++last;
      RETURN_IF_ERROR(rundb::Query(reader_).each_row(
          fmt::format("SELECT from_span, to_span FROM flow WHERE to_span BETWEEN {} AND {}",
                      spans[i].id, spans[last].id),
          [this](std::span<const rundb::Cell> row) {
            return write_flow(integer(row[0]), integer(row[1]));
          }));
      i = last + 1;
    }
    return ok_status();
  }

  Status write_flow(std::int64_t from_span, std::int64_t to_span) {
    const auto from = places_.find(from_span);
    const auto to = places_.find(to_span);
    if (from == places_.end() || to == places_.end()) {
      unplaced_.emplace_back(from_span, to_span);
      return ok_status();
    }
    const std::int64_t id = ++counts_.flows;
    const Place& cause = from->second;
    const TimeNs begin_ts = cause.dur > 0 ? cause.ts + cause.dur - 1 : cause.ts;
    RETURN_IF_ERROR(event(
        fmt::format(R"({{"ph":"s","name":"cause","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}}})",
                    id, cause.pid, cause.tid, micros(begin_ts))));
    return event(fmt::format(
        R"({{"ph":"f","bp":"e","name":"cause","cat":"flow","id":{},"pid":{},"tid":{},"ts":{}}})",
        id, to->second.pid, to->second.tid, micros(to->second.ts)));
  }

  Status write_counters() {
    return rundb::Query(reader_).each_row(
        "SELECT track_id, ts, value FROM counter WHERE value IS NOT NULL ORDER BY rowid",
        [this](std::span<const rundb::Cell> row) {
          const auto track = info_.tracks.find(integer(row[0]));
          const auto* value = std::get_if<double>(&row[2]);
          const TimeNs ts = integer(row[1]);
          if (track == info_.tracks.end() || value == nullptr || !std::isfinite(*value) ||
              !part_.has_instant(ts)) {
            return ok_status();
          }
          return event(fmt::format(
              R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"value":{}}}}})",
              json_text(track->second.name), pid_of_track_[track->first], micros(ts), *value));
        });
  }

  rundb::Reader& reader_;
  OutputFile& file_;
  const RunPart& part_;
  const OnProgress& on_progress_;
  analyze::RunInfo info_;
  ChromeTraceCounts counts_;
  bool is_first_ = true;
  std::unordered_map<std::int64_t, int> pid_of_track_;
  std::unordered_map<std::int64_t, detail::Lanes> lanes_;              // by track
  std::map<std::pair<std::int64_t, std::size_t>, std::int64_t> tids_;  // by track and lane
  std::int64_t next_tid_ = kStepsTid + 1;
  std::unordered_map<std::int64_t, Place> places_;  // by span, of the last kPlacesMax
  std::deque<std::int64_t> place_order_;
  std::vector<std::pair<std::int64_t, std::int64_t>> unplaced_;  // flows of the last window
};

}  // namespace

Result<ChromeTraceCounts> write_chrome_trace(rundb::Reader& reader, OutputFile& file,
                                             const RunPart& part, const OnProgress& on_progress) {
  return ChromeTrace(reader, file, part, on_progress).write();
}

}  // namespace sluice::report
