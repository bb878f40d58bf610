#include "gui/data/timeline_window.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "gui/data/run_facts.h"
#include "gui/data/span_cache.h"
#include "gui/data/span_index.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/timeline_reader.h"

namespace sluice::gui {
namespace {

// Room on each side, as a share of what is asked for.
constexpr double kRoom = 0.75;

Box box_of(const rundb::SpanRow& row) {
  return {.ts = row.ts,
          .end_ts = row.end_ts(),
          .submit_ts = row.submit_ts,
          .span_id = row.id,
          .bytes = row.bytes,
          .padding_bytes = row.padding_bytes,
          .busy_ns = row.dur,
          .name_id = static_cast<std::int32_t>(row.name_id),
          .step = static_cast<std::int32_t>(row.step_id),
          .subgroup = static_cast<std::int32_t>(row.subgroup_id),
          .device = static_cast<std::int32_t>(row.device_id),
          .layer = static_cast<std::int32_t>(row.layer_id),
          .is_failed = row.status == rundb::SpanStatus::failed};
}

// Takes spans of one track in order of their begin: places what overlaps on lanes of its own, and
// makes one box of those on a lane that share a column.
class TrackFolding {
 public:
  TrackFolding(TrackBoxes& track, TimeNs column_ns) : track_(&track), column_ns_(column_ns) {}

  void add(Box box) {
    box.lane = lane_for(box);
    Lane& lane = lanes_[box.lane];
    lane.end_ts = std::max(lane.end_ts, box.end_ts);
    track_->lane_count = std::max(track_->lane_count, box.lane + 1);
    const TimeNs column = box.ts / column_ns_;
    if (box.end_ts - box.ts >= column_ns_) {
      lane.folded = kNone;
      push(box);
    } else if (lane.folded != kNone && lane.column == column) {
      fold(track_->boxes[lane.folded], box, lane);
    } else {
      lane.folded = track_->boxes.size();
      lane.column = column;
      lane.longest_ns = box.end_ts - box.ts;
      push(box);
    }
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Lane {
    TimeNs end_ts = std::numeric_limits<TimeNs>::min();
    TimeNs column = 0;
    TimeNs longest_ns = 0;
    std::size_t folded = kNone;  // box that takes more of this column
  };

  std::uint8_t lane_for(const Box& box) const {
    for (std::size_t l = 0; l + 1 < lanes_.size(); ++l) {
      if (lanes_[l].end_ts <= box.ts) return static_cast<std::uint8_t>(l);
    }
    return kLanesMax - 1;
  }

  void push(const Box& box) {
    track_->longest_ns = std::max(track_->longest_ns, box.end_ts - box.ts);
    track_->boxes.push_back(box);
  }

  void fold(Box& into, const Box& box, Lane& lane) {
    if (box.end_ts - box.ts > lane.longest_ns) {
      lane.longest_ns = box.end_ts - box.ts;
      into.name_id = box.name_id;
    }
    into.span_id = 0;
    into.end_ts = std::max(into.end_ts, box.end_ts);
    track_->longest_ns = std::max(track_->longest_ns, into.end_ts - into.ts);
    into.count += 1;
    into.busy_ns += box.busy_ns;
    into.bytes += box.bytes;
    into.padding_bytes += box.padding_bytes;
    into.is_failed = into.is_failed || box.is_failed;
  }

  TrackBoxes* track_;
  TimeNs column_ns_;
  std::array<Lane, kLanesMax> lanes_;
};

Status read_spans(rundb::Reader& reader, const SpanIndex& index, SpanCache& cache,
                  TimelineWindow& window) {
  ASSIGN_OR_RETURN(const std::vector<rundb::SpanRow>* rows,
                   cache.between(reader, index, window.begin, window.end));
  std::unordered_map<std::int64_t, std::size_t> index_of_track;
  for (std::size_t t = 0; t < window.tracks.size(); ++t)
    index_of_track[window.tracks[t].track_id] = t;
  std::vector<TrackFolding> foldings;
  for (TrackBoxes& track : window.tracks)
    foldings.emplace_back(track, std::max<TimeNs>(1, window.request.column_ns));
  for (const rundb::SpanRow& row : *rows) {
    const auto track = index_of_track.find(row.track_id);
    if (track != index_of_track.end()) foldings[track->second].add(box_of(row));
  }
  return ok_status();
}

Status read_long_spans(rundb::Reader& reader, int level, const TimelineWindow& window,
                       TrackBoxes& track) {
  TrackFolding folding(track, 1);
  return rundb::TimelineReader(reader).each_long_span(
      track.track_id, level, window.begin, window.end,
      [&folding](const rundb::SpanRow& row) { folding.add(box_of(row)); });
}

// Each track's bins in order of time, as they come chunk by chunk.
Result<std::unordered_map<std::int64_t, std::vector<rundb::LodRow>>> bins_by_track(
    rundb::Reader& reader, int level, TimeNs begin, TimeNs end) {
  ASSIGN_OR_RETURN(const std::vector<rundb::LodRow> bins,
                   rundb::TimelineReader(reader).lod_of_all_tracks(level, begin, end));
  std::unordered_map<std::int64_t, std::vector<rundb::LodRow>> by_track;
  for (const rundb::LodRow& bin : bins) by_track[bin.track_id].push_back(bin);
  return by_track;
}

Status read_bins(rundb::Reader& reader, TimelineWindow& window) {
  const int level = rundb::lod_level_for(window.request.column_ns);
  const TimeNs width_ns = rundb::lod_width_ns(level);
  ASSIGN_OR_RETURN(auto bins, bins_by_track(reader, level, window.begin, window.end));
  for (TrackBoxes& track : window.tracks) {
    RETURN_IF_ERROR(read_long_spans(reader, level, window, track));
    const std::size_t long_count = track.boxes.size();
    for (const rundb::LodRow& bin : bins[track.track_id]) {
      track.boxes.push_back({.ts = bin.bin * width_ns,
                             .end_ts = (bin.bin + 1) * width_ns,
                             .busy_ns = bin.busy_ns,
                             .name_id = static_cast<std::int32_t>(bin.longest_name_id),
                             .count = static_cast<std::int32_t>(bin.count)});
    }
    if (track.boxes.size() > long_count) track.longest_ns = std::max(track.longest_ns, width_ns);
    std::ranges::inplace_merge(
        track.boxes, track.boxes.begin() + static_cast<std::ptrdiff_t>(long_count), {}, &Box::ts);
  }
  return ok_status();
}

}  // namespace

std::span<const Box> TrackBoxes::near(TimeNs begin, TimeNs end) const {
  const auto first = std::ranges::lower_bound(boxes, begin - longest_ns, {}, &Box::ts);
  return {first, std::ranges::upper_bound(first, boxes.end(), end, {}, &Box::ts)};
}

const TrackBoxes* TimelineWindow::of_track(std::int64_t track_id) const {
  const auto found = std::ranges::find(tracks, track_id, &TrackBoxes::track_id);
  return found == tracks.end() ? nullptr : &*found;
}

Result<TimelineWindow> read_timeline(rundb::Reader& reader, const RunFacts& facts,
                                     const SpanIndex& index, SpanCache& cache,
                                     const TimelineRequest& request, TimelineRoom room) {
  TimelineWindow window;
  window.request = request;
  const auto wide_ns =
      static_cast<TimeNs>(static_cast<double>(request.end - request.begin) * kRoom);
  const TimeNs room_ns = room == TimelineRoom::wide ? wide_ns : 0;
  window.begin = request.begin - room_ns;
  window.end = request.end + room_ns;
  for (const TrackFacts& track : facts.tracks) {
    if (!track.is_counter) window.tracks.push_back({.track_id = track.id, .boxes = {}});
  }
  window.has_spans =
      index.estimate(request.begin - wide_ns, request.end + wide_ns) <= kSpansReadMax;
  RETURN_IF_ERROR(window.has_spans ? read_spans(reader, index, cache, window)
                                   : read_bins(reader, window));
  return window;
}

Result<Minimap> read_minimap(rundb::Reader& reader, const RunFacts& facts, TimeNs begin, TimeNs end,
                             std::size_t column_count) {
  Minimap minimap{.begin = begin, .end = end, .columns = {}};
  minimap.columns.resize(column_count);
  if (end <= begin) return minimap;
  const double columns_a_ns = static_cast<double>(column_count) / static_cast<double>(end - begin);
  // Bins finer than a column are more to read, coarser ones would show as steps.
  const auto column_ns = static_cast<TimeNs>(1 / columns_a_ns);
  const int level = std::max(0, rundb::lod_level_for(std::max<TimeNs>(1, column_ns / 8)));
  std::vector<double> busy_ns(column_count, 0);
  std::vector<double> most_ns(column_count, 0);
  const auto add = [&](TimeNs from, TimeNs to, double busy, std::int64_t name_id) {
    const auto column_of = [&](TimeNs ts) {
      const double column = static_cast<double>(ts - begin) * columns_a_ns;
      return static_cast<std::size_t>(
          std::clamp(column, 0.0, static_cast<double>(column_count - 1)));
    };
    const std::size_t first = column_of(from);
    const std::size_t last = column_of(std::max(from, to - 1));
    for (std::size_t c = first; c <= last; ++c) {
      const double part = busy / static_cast<double>(last - first + 1);
      busy_ns[c] += part;
      if (part <= most_ns[c]) continue;
      most_ns[c] = part;
      minimap.columns[c].name_id = static_cast<std::int32_t>(name_id);
    }
  };
  ASSIGN_OR_RETURN(auto bins, bins_by_track(reader, level, begin, end));
  const TimeNs width_ns = rundb::lod_width_ns(level);
  for (const TrackFacts& track : facts.tracks) {
    if (track.is_counter || track.kind == "recorder") continue;
    for (const rundb::LodRow& bin : bins[track.id])
      add(bin.bin * width_ns, (bin.bin + 1) * width_ns, static_cast<double>(bin.busy_ns),
          bin.longest_name_id);
    TrackBoxes long_ones{.track_id = track.id, .boxes = {}};
    TimelineWindow all{.request = {}, .begin = begin, .end = end, .tracks = {}};
    RETURN_IF_ERROR(read_long_spans(reader, level, all, long_ones));
    for (const Box& box : long_ones.boxes)
      add(box.ts, box.end_ts, static_cast<double>(box.end_ts - box.ts), box.name_id);
  }
  const double most = *std::ranges::max_element(busy_ns);
  for (std::size_t c = 0; c < column_count && most > 0; ++c)
    minimap.columns[c].busy = static_cast<float>(busy_ns[c] / most);
  return minimap;
}

}  // namespace sluice::gui
