#include "profiler/report/merged_record.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>

#include "profiler/analyze/track_order.h"
#include "profiler/report/detail/cells.h"
#include "profiler/report/detail/merged_samples.h"
#include "profiler/report/detail/span_stream.h"
#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/query.h"
#include "storage/rundb/writer.h"

namespace sluice::report {
namespace {

using analyze::RankRecord;

constexpr std::size_t kBatchRows = 1 << 14;
constexpr std::int64_t kWindowSpans = 1 << 13;  // of each rank at a time

using Ids = std::unordered_map<std::int64_t, std::int64_t>;  // of one rank's record, in the merged

// One rank's operations and steps in order of their begin, as the merged record has them: names,
// tracks and times are its own. Their ids are still the rank's.
class RankStream {
 public:
  static Result<RankStream> open(const RankRecord& record, Ids tracks, Ids names, Ids devices,
                                 std::int64_t step_track, std::int64_t step_name) {
    ASSIGN_OR_RETURN(detail::SpanStream spans,
                     detail::SpanStream::open(*record.reader, RunPart(), kWindowSpans));
    RankStream stream(record, std::move(spans), std::move(tracks), std::move(names));
    stream.devices_ = std::move(devices);
    stream.step_track_ = step_track;
    stream.step_name_ = step_name;
    return stream;
  }

  // Null: there is no further one.
  Result<const rundb::SpanRow*> peek() {
    while (at_ == rows_.size()) {
      if (is_over_) return nullptr;
      RETURN_IF_ERROR(fill());
    }
    return &rows_[at_];
  }
  void skip() { ++at_; }
  // From now on operations are of the steps in which they end, and the stream has none of its own.
  void take_steps_of(const std::vector<rundb::StepRow>& steps) { first_steps_ = &steps; }
  double share_done() const { return spans_.share_done(); }

 private:
  RankStream(const RankRecord& record, detail::SpanStream spans, Ids tracks, Ids names)
      : record_(&record),
        spans_(std::move(spans)),
        tracks_(std::move(tracks)),
        names_(std::move(names)) {}

  Status fill() {
    at_ = 0;
    ASSIGN_OR_RETURN(const bool is_there, spans_.next(rows_));
    is_over_ = !is_there;
    for (rundb::SpanRow& row : rows_) RETURN_IF_ERROR(translate(row));
    if (record_->rank == 0 || first_steps_ != nullptr) return ok_status();
    add_steps();
    std::ranges::stable_sort(rows_, {}, &rundb::SpanRow::ts);
    return ok_status();
  }

  Status translate(rundb::SpanRow& row) const {
    const auto track = tracks_.find(row.track_id);
    const auto name = names_.find(row.name_id);
    if (track == tracks_.end() || name == names_.end()) {
      return make_error(ErrorCode::corrupt, "{}: span {} names a track or string that has no row",
                        record_->path, row.id);
    }
    row.track_id = track->second;
    row.name_id = name->second;
    const TimeNs waited_ns = row.ts - row.submit_ts;
    const TimeNs end_ts = record_->clock.to_first(row.ts + row.dur);
    row.ts = record_->clock.to_first(row.ts);
    row.submit_ts = row.ts - waited_ns;
    row.dur = std::max<TimeNs>(0, end_ts - row.ts);
    const auto device = devices_.find(row.device_id);
    row.device_id = device == devices_.end() ? -1 : device->second;
    if (first_steps_ != nullptr) row.step_id = step_at(row.ts + row.dur);
    return ok_status();
  }

  // The step of the first in which that is; -1: none.
  std::int64_t step_at(TimeNs ts) const {
    const auto after = std::ranges::upper_bound(*first_steps_, ts, {}, &rundb::StepRow::ts);
    if (after == first_steps_->begin()) return -1;
    const rundb::StepRow& step = *std::prev(after);
    return ts <= step.ts + step.dur ? step.id : -1;
  }

  // Those that begin within what was read.
  void add_steps() {
    const std::size_t spans = rows_.size();
    while (next_step_ < record_->steps.size()) {
      const rundb::StepRow& step = record_->steps[next_step_];
      const TimeNs ts = record_->clock.to_first(step.ts);
      if (!is_over_ && (spans == 0 || ts > rows_[spans - 1].ts)) break;
      rows_.push_back({.id = -1,
                       .track_id = step_track_,
                       .name_id = step_name_,
                       .submit_ts = ts,
                       .ts = ts,
                       .dur = record_->clock.to_first(step.ts + step.dur) - ts,
                       .step_id = step.id});
      ++next_step_;
    }
  }

  const RankRecord* record_;
  detail::SpanStream spans_;
  Ids tracks_;
  Ids names_;
  Ids devices_;
  const std::vector<rundb::StepRow>* first_steps_ = nullptr;
  std::int64_t step_track_ = 0;
  std::int64_t step_name_ = 0;
  std::vector<rundb::SpanRow> rows_;
  std::size_t at_ = 0;
  std::size_t next_step_ = 0;
  bool is_over_ = false;
};

class Merge {
 public:
  Merge(const std::vector<RankRecord>& records, rundb::Writer& writer,
        const OnProgress& on_progress, const std::stop_token& stop)
      : records_(records),
        writer_(writer),
        on_progress_(on_progress),
        stop_(stop),
        is_of_processes_(!records.front().info->meta_value(rundb::kRecordedTogether).empty()),
        links_(records.size()),
        devices_(records.size()),
        tracks_(records.size()),
        span_ids_(records.size()) {}

  Result<MergedCounts> run() {
    RETURN_IF_ERROR(write_facts());
    RETURN_IF_ERROR(write_what_is_of_the_first());
    RETURN_IF_ERROR(write_stats());
    RETURN_IF_ERROR(write_spans());
    RETURN_IF_ERROR(write_samples());
    for (std::size_t r = 0; r < records_.size(); ++r) {
      std::ranges::sort(span_ids_[r]);
      RETURN_IF_ERROR(write_flows(r));
      RETURN_IF_ERROR(write_counters(r));
    }
    return counts_;
  }

 private:
  const RankRecord& first() const { return records_.front(); }

  std::string name_of(std::size_t r, const std::string& name) const {
    if (is_of_processes_) return fmt::format("process {}: {}", process_of(r), name);
    return analyze::rank_prefix(records_[r].rank) + name;
  }

  // "4711", "4711.2": as `sluice record` calls its database.
  std::string process_of(std::size_t r) const {
    return std::filesystem::path(records_[r].path).stem().string();
  }

  // "rank 1 within 2.1 us, rank 2 within 1.9 us of rank 0's", for people.
  std::string clocks_text() const {
    std::string text;
    for (const RankRecord& record : records_) {
      if (record.rank == 0) continue;
      text += fmt::format("{}rank {} within {}", text.empty() ? "" : ", ", record.rank,
                          format_duration(record.clock.bound_ns()));
    }
    return text + " of rank 0's";
  }

  std::vector<rundb::MetaRow> meta() const {
    std::vector<rundb::MetaRow> rows = first().info->meta;
    std::erase_if(rows, [](const rundb::MetaRow& row) { return row.key == "rank"; });
    if (is_of_processes_) {
      rows.push_back({std::string(analyze::kMergedProcesses), fmt::format("{}", records_.size())});
      return rows;
    }
    TimeNs bound_ns = 0;
    for (const RankRecord& record : records_) bound_ns = std::max(bound_ns, record.bound_ns);
    rows.push_back({std::string(analyze::kMergedRanks), fmt::format("{}", records_.size())});
    rows.push_back({std::string(analyze::kMergedBound), fmt::format("{}", bound_ns)});
    rows.push_back({"rank_clocks", clocks_text()});
    return rows;
  }

  Status write_facts() {
    rundb::Facts facts;
    facts.meta = meta();
    for (std::size_t r = 0; r < records_.size(); ++r) {
      add_devices(r, facts);
      add_links(r, facts);
      // Ranks have the same.
      if (r == 0 || is_of_processes_) RETURN_IF_ERROR(add_stages(r, facts));
    }
    RETURN_IF_ERROR(rundb::Query(*first().reader)
                        .each_row("SELECT id, first, count, device_id FROM subgroup",
                                  [&facts](std::span<const rundb::Cell> row) {
                                    facts.subgroups.push_back({.id = integer(row[0]),
                                                               .first = integer(row[1]),
                                                               .count = integer(row[2]),
                                                               .device_id = integer(row[3])});
                                    return ok_status();
                                  }));
    ASSIGN_OR_RETURN(facts.knobs, first().reader->knobs());
    return writer_.write_facts(facts);
  }

  // Processes of one machine have the same ones, by their names. Those of ranks are told apart, and
  // the first's have rows.
  void add_devices(std::size_t r, rundb::Facts& facts) {
    if (r > 0 && !is_of_processes_) return;
    for (rundb::DeviceRow device : records_[r].info->devices) {
      const auto known = std::ranges::find(facts.devices, device.name, &rundb::DeviceRow::name);
      const std::int64_t id = r == 0                         ? device.id
                              : known == facts.devices.end() ? std::ssize(facts.devices)
                                                             : known->id;
      devices_[r].emplace(device.id, id);
      if (r > 0 && known != facts.devices.end()) continue;
      device.id = id;
      facts.devices.push_back(std::move(device));
    }
  }

  void add_links(std::size_t r, rundb::Facts& facts) {
    for (rundb::LinkRow link : records_[r].info->links) {
      const auto known = std::ranges::find(facts.links, link.name, &rundb::LinkRow::name);
      if (is_of_processes_ && known != facts.links.end()) {
        links_[r].emplace(link.id, known->id);
        continue;
      }
      const auto id = static_cast<std::int64_t>(facts.links.size());
      links_[r].emplace(link.id, id);
      link.id = id;
      if (r > 0 && !is_of_processes_) link.name = name_of(r, link.name);
      facts.links.push_back(std::move(link));
    }
  }

  // In their order: ids of their names ascend with it. The first meaning of a name stands.
  Status add_stages(std::size_t r, rundb::Facts& facts) {
    ASSIGN_OR_RETURN(const std::vector<rundb::StageRow> stages,
                     rundb::CatalogReader(*records_[r].reader).stages());
    for (rundb::StageRow stage : stages) {
      const auto name = records_[r].info->strings.find(stage.name_id);
      if (name == records_[r].info->strings.end()) {
        return make_error(ErrorCode::corrupt, "{}: a stage names a string that has no row",
                          records_[r].path);
      }
      stage.name_id = writer_.string_id(name->second);
      if (std::ranges::find(facts.stages, stage.name_id, &rundb::StageRow::name_id) ==
          facts.stages.end())
        facts.stages.push_back(std::move(stage));
    }
    return ok_status();
  }

  Status write_what_is_of_the_first() {
    rundb::Batch batch;
    batch.steps = first().steps;
    ASSIGN_OR_RETURN(batch.modes, first().reader->modes());
    ASSIGN_OR_RETURN(batch.validations, first().reader->validations());
    batch.knob_changes = first().info->knob_changes;
    ASSIGN_OR_RETURN(batch.verdicts,
                     first().reader->verdicts(batch.steps.empty() ? 0 : batch.steps.front().id));
    RETURN_IF_ERROR(
        rundb::Query(*first().reader)
            .each_row("SELECT clock, ts, realtime_ts FROM clock_snapshot ORDER BY rowid",
                      [&batch](std::span<const rundb::Cell> row) {
                        const auto* clock = std::get_if<std::string>(&row[0]);
                        batch.clocks.push_back({.clock = clock == nullptr ? "" : *clock,
                                                .ts = integer(row[1]),
                                                .realtime_ts = integer(row[2])});
                        return ok_status();
                      }));
    return writer_.append(batch);
  }

  // Losses of any rank are losses of all, and lateness on any rank made all steps longer.
  Status write_stats() {
    for (const RankRecord& record : records_) {
      rundb::Batch batch;
      ASSIGN_OR_RETURN(batch.stats, record.reader->stats());
      ASSIGN_OR_RETURN(batch.lateness, record.reader->lateness());
      for (const rundb::LatenessRow& row : batch.lateness) (void)writer_.string_id(row.stage);
      RETURN_IF_ERROR(writer_.append(batch));
    }
    return ok_status();
  }

  // Each process samples itself. Ranks' threads have the same names, so that only the first's are
  // joined with its operations.
  Status write_samples() {
    detail::MergedSamples samples([this](rundb::Batch& batch) { return append_rows(batch); });
    const std::size_t count = is_of_processes_ ? records_.size() : 1;
    for (std::size_t r = 0; r < count; ++r) RETURN_IF_ERROR(samples.add(*records_[r].reader));
    return ok_status();
  }

  // The rank's tracks, parents before what stands under them.
  void add_tracks(std::size_t r) {
    const analyze::RunInfo& info = *records_[r].info;
    std::vector<const analyze::TrackInfo*> in_order;
    for (const auto& [id, track] : info.tracks) in_order.push_back(&track);
    std::ranges::sort(in_order, {}, &analyze::TrackInfo::id);
    for (const analyze::TrackInfo* track : in_order) add_track(r, *track);
  }

  void add_track(std::size_t r, const analyze::TrackInfo& track) {
    const analyze::RunInfo& info = *records_[r].info;
    const analyze::TrackInfo& root = analyze::root_of(info, track);
    // "csd0 update" stands under "csd0", and is to be found there under its new name, too.
    // Threads have their numbers in their names.
    const bool is_to_be_told = track.name.starts_with(root.name) &&
                               !(is_of_processes_ && (r == 0 || root.kind == "thread"));
    const std::string name = is_to_be_told ? name_of(r, track.name) : track.name;
    std::vector<rundb::TrackLink> links;
    for (const std::int64_t link : track.links) {
      const auto id = links_[r].find(link);
      if (id != links_[r].end()) links.push_back({id->second, track.direction});
    }
    const auto parent = tracks_[r].find(track.parent_id);
    tracks_[r][track.id] =
        writer_.track_id(parent == tracks_[r].end() ? std::nullopt : std::optional(parent->second),
                         track.kind, name, links);
  }

  Result<std::vector<RankStream>> open_streams() {
    std::vector<RankStream> streams;
    const std::int64_t step_name = writer_.string_id("step");
    for (std::size_t r = 0; r < records_.size(); ++r) {
      add_tracks(r);
      Ids names;
      for (const auto& [id, text] : records_[r].info->strings) names[id] = writer_.string_id(text);
      const std::int64_t step_track =
          r == 0 || is_of_processes_
              ? 0
              : writer_.track_id(std::nullopt, analyze::kRankSteps, name_of(r, "steps"));
      ASSIGN_OR_RETURN(RankStream stream,
                       RankStream::open(records_[r], tracks_[r], std::move(names), devices_[r],
                                        step_track, step_name));
      if (is_of_processes_ && r > 0) stream.take_steps_of(first().steps);
      streams.push_back(std::move(stream));
    }
    return streams;
  }

  Status write_spans() {
    ASSIGN_OR_RETURN(std::vector<RankStream> streams, open_streams());
    while (true) {
      std::size_t next = streams.size();
      TimeNs next_ts = 0;
      for (std::size_t r = 0; r < streams.size(); ++r) {
        ASSIGN_OR_RETURN(const rundb::SpanRow* row, streams[r].peek());
        if (row == nullptr || (next < streams.size() && row->ts >= next_ts)) continue;
        next = r;
        next_ts = row->ts;
      }
      if (next == streams.size()) break;
      ASSIGN_OR_RETURN(const rundb::SpanRow* row, streams[next].peek());
      batch_.push_back({next, *row});
      streams[next].skip();
      if (batch_.size() < kBatchRows) continue;
      RETURN_IF_ERROR(write_batch());
      tell_progress(streams);
    }
    return write_batch();
  }

  void tell_progress(const std::vector<RankStream>& streams) const {
    if (!on_progress_) return;
    double sum = 0;
    for (const RankStream& stream : streams) sum += stream.share_done();
    on_progress_(sum / static_cast<double>(streams.size()));
  }

  // A batch's spans of one track lie side by side, which is how readers find them.
  Status write_batch() {
    std::ranges::stable_sort(
        batch_, {}, [](const auto& one) { return std::pair(one.second.track_id, one.second.ts); });
    rundb::Batch batch;
    std::int64_t id = writer_.next_span_id();
    for (auto& [r, row] : batch_) {
      if (row.id >= 0) span_ids_[r].emplace_back(row.id, id);
      row.id = id++;
      batch.spans.push_back(row);
    }
    counts_.spans += std::ssize(batch_);
    batch_.clear();
    return append_rows(batch);
  }

  // -1: it is not among the rank's spans.
  std::int64_t merged_id(std::size_t r, std::int64_t id) const {
    const auto found = std::ranges::lower_bound(span_ids_[r], std::pair(id, std::int64_t{0}));
    return found == span_ids_[r].end() || found->first != id ? -1 : found->second;
  }

  Status write_flows(std::size_t r) {
    rundb::Batch batch;
    RETURN_IF_ERROR(
        rundb::Query(*records_[r].reader)
            .each_row("SELECT from_span, to_span FROM flow", [&](std::span<const rundb::Cell> row) {
              const rundb::FlowRow flow{merged_id(r, integer(row[0])),
                                        merged_id(r, integer(row[1]))};
              if (flow.from_span < 0 || flow.to_span < 0) return ok_status();
              batch.flows.push_back(flow);
              ++counts_.flows;
              return batch.flows.size() < kBatchRows ? ok_status() : append_rows(batch);
            }));
    return append_rows(batch);
  }

  Status write_counters(std::size_t r) {
    rundb::Batch batch;
    RETURN_IF_ERROR(rundb::Query(*records_[r].reader)
                        .each_row("SELECT track_id, ts, value FROM counter ORDER BY rowid",
                                  [&](std::span<const rundb::Cell> row) {
                                    add_counter(r, row, batch);
                                    return batch.counters.size() < kBatchRows ? ok_status()
                                                                              : append_rows(batch);
                                  }));
    return append_rows(batch);
  }

  void add_counter(std::size_t r, std::span<const rundb::Cell> row, rundb::Batch& batch) const {
    const auto track = tracks_[r].find(integer(row[0]));
    if (track == tracks_[r].end()) return;
    const auto* value = std::get_if<double>(&row[2]);
    batch.counters.push_back(
        {.track_id = track->second,
         .ts = records_[r].clock.to_first(integer(row[1])),
         .value = value == nullptr ? std::numeric_limits<double>::quiet_NaN() : *value});
  }

  Status append_rows(rundb::Batch& batch) {
    if (stop_.stop_requested()) return make_error(ErrorCode::cancelled, "the merge was stopped");
    const Status status = writer_.append(batch);
    batch = {};
    return status;
  }

  const std::vector<RankRecord>& records_;
  rundb::Writer& writer_;
  const OnProgress& on_progress_;
  const std::stop_token& stop_;
  MergedCounts counts_;
  const bool is_of_processes_;
  std::vector<Ids> links_;  // by rank, as are the next three
  std::vector<Ids> devices_;
  std::vector<Ids> tracks_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> span_ids_;  // theirs, merged
  std::vector<std::pair<std::size_t, rundb::SpanRow>> batch_;                 // with their rank
};

Result<MergedCounts> write_unfinished(const std::vector<RankRecord>& records,
                                      const std::string& path, const OnProgress& on_progress,
                                      const std::stop_token& stop) {
  std::vector<rundb::Reader::Snapshot> snapshots;  // a run may be live
  for (const RankRecord& record : records) {
    ASSIGN_OR_RETURN(rundb::Reader::Snapshot snapshot, record.reader->snapshot());
    snapshots.push_back(std::move(snapshot));
  }
  ASSIGN_OR_RETURN(
      const std::unique_ptr<rundb::Writer> writer,
      rundb::Writer::create(path, rundb::IfExists::replace, rundb::ClockOf::the_batches));
  ASSIGN_OR_RETURN(const MergedCounts counts, Merge(records, *writer, on_progress, stop).run());
  RETURN_IF_ERROR(writer->close());
  return counts;
}

}  // namespace

Result<MergedCounts> merge_records(const std::vector<RankRecord>& records, const std::string& path,
                                   IfExists if_exists, const OnProgress& on_progress,
                                   const std::stop_token& stop) {
  if (records.front().info->has_all_ranks()) {
    return make_error(ErrorCode::config, "{}: has all ranks of its run already",
                      records.front().path);
  }
  RETURN_IF_ERROR(check_output_file(path, if_exists));
  const std::string unfinished = unfinished_path(path);
  std::error_code error;
  std::filesystem::remove(unfinished, error);  // of a merge that was killed
  const Result<MergedCounts> counts = write_unfinished(records, unfinished, on_progress, stop);
  if (!counts.ok()) {
    std::filesystem::remove(unfinished, error);
    return counts;
  }
  RETURN_IF_ERROR(finish_file(path));
  return counts;
}

}  // namespace sluice::report
