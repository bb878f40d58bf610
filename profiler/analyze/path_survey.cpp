#include "profiler/analyze/path_survey.h"

#include <algorithm>
#include <functional>
#include <set>

#include "profiler/analyze/intervals.h"
#include "profiler/analyze/link_use.h"

namespace sluice::analyze {
namespace {

const Span* span_of_id(const StepData& step, std::int64_t id) {
  const auto span = std::ranges::lower_bound(step.spans, id, {}, &Span::id);
  return span != step.spans.end() && span->id == id ? &*span : nullptr;
}

const rundb::LinkRow* own_link(const TrackInfo& track, const RunInfo& info) {
  for (const std::int64_t id : track.links) {
    const auto link = std::ranges::find(info.links, id, &rundb::LinkRow::id);
    if (link == info.links.end() || is_shared_link(link->name)) continue;
    if (!link->name.ends_with(".link")) return &*link;
  }
  return nullptr;
}

bool is_program_read(const Span& span, const PathPiece& piece, const RunInfo& info) {
  if (piece.cause == Cause::program) return true;
  const bool is_of_state = span.stage != nullptr && !span.stage->drive_file.empty();
  return piece.cause == Cause::read && !is_of_state && crosses_drive(span, info);
}

// How many operations there are between a selection and the transfers of what is left.
constexpr int kHopsMax = 3;

}  // namespace

bool crosses_drive(const Span& span, const RunInfo& info) {
  return !span.track->links.empty() && own_link(*span.track, info) != nullptr;
}

void PathTime::add(TimeNs ns, std::int64_t span, std::int64_t step) {
  ns_ += ns;
  by_step_[step] += ns;
  if (span >= 0) worst_.push_back({ns, span});
  if (worst_.size() > 8 * kEvidenceMax) keep_worst();
}

void PathTime::add(const PathTime& other) {
  ns_ += other.ns_;
  for (const auto& [step, ns] : other.by_step_) by_step_[step] += ns;
  worst_.insert(worst_.end(), other.worst_.begin(), other.worst_.end());
  keep_worst();
}

void PathTime::keep_worst() {
  std::ranges::stable_sort(worst_, std::greater<>(), &Piece::ns);
  worst_.resize(std::min(worst_.size(), kEvidenceMax));
}

std::vector<std::int64_t> PathTime::spans() const {
  PathTime sorted = *this;
  sorted.keep_worst();
  std::vector<std::int64_t> ids;
  for (const Piece& piece : sorted.worst_) {
    if (std::ranges::count(ids, piece.span) == 0) ids.push_back(piece.span);
  }
  return ids;
}

std::vector<std::int64_t> PathTime::steps() const {
  std::vector<std::pair<TimeNs, std::int64_t>> most;
  for (const auto& [step, ns] : by_step_) most.emplace_back(ns, step);
  std::ranges::stable_sort(most, std::greater<>(), &std::pair<TimeNs, std::int64_t>::first);
  std::vector<std::int64_t> ids;
  for (const auto& [ns, step] : most) {
    if (ids.size() < kEvidenceMax) ids.push_back(step);
  }
  return ids;
}

PathUse& PathSurvey::use_of(const Span& span) {
  PathUse& use = uses[{span.track_id, span.name_id, span.device_id}];
  if (use.track == nullptr) {
    use.track = span.track;
    use.name = span.name;
    use.stage = span.stage;
    use.device = span.device_id;
  }
  return use;
}

void PathSurvey::add(const StepData& step, const StepVerdict& verdict) {
  step_count += 1;
  dur_ns += step.row.dur;
  add_operations(step);
  add_path(step, verdict);
  add_compression(step);
}

void PathSurvey::add_operations(const StepData& step) {
  Intervals kernels;
  std::map<std::int64_t, std::array<Intervals, 2>> drives;
  std::map<std::int64_t, std::vector<const Span*>> of_track;
  for (const Span& span : step.spans) {
    if (span.dur <= 0 || span.track->is_beside_schedule() || span.track->is_waiting()) continue;
    // Neighbouring steps' operations touch this one.
    if (span.end_ts() <= step.row.ts || span.ts >= step.row.ts + step.row.dur) continue;
    PathUse& use = use_of(span);
    use.count += 1;
    use.bytes += span.bytes + span.padding_bytes;
    if (span.track->links.empty()) {
      const bool is_of_host =
          span.track->kind == "host" || (span.stage != nullptr && span.stage->place == "host");
      if (is_of_host && span.stage_cause().empty()) {
        host_kernel_ns += span.dur;
        kernels.add(span.ts, span.end_ts());
      }
      continue;
    }
    of_track[span.track_id].push_back(&span);
    const rundb::LinkRow* link = own_link(*span.track, *step.info);
    if (link != nullptr && link->full_duplex) {
      drives[link->id][static_cast<std::size_t>(span.track->direction)].add(span.ts, span.end_ts());
    }
  }
  host_kernel_busy_ns += kernels.sum_ns();
  for (auto& [id, busy] : drives) {
    drive_read_ns += busy[0].sum_ns();
    drive_write_ns += busy[1].sum_ns();
    drive_both_ns += Intervals::both_ns(busy[0], busy[1]);
  }
  for (auto& [id, spans] : of_track) {
    std::ranges::stable_sort(spans, {}, &Span::submit_ts);
    TimeNs until_ts = step.row.ts;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const bool is_free = spans[i]->submit_ts >= until_ts;
      until_ts = std::max(until_ts, spans[i]->end_ts());
      if (is_free && (i + 1 == spans.size() || spans[i + 1]->submit_ts >= spans[i]->end_ts()))
        use_of(*spans[i]).alone += 1;
    }
  }
}

void PathSurvey::add_path(const StepData& step, const StepVerdict& verdict) {
  PathTime waiting;
  int last_work = -1, last_way = -1;  // of the path until here
  for (std::size_t i = 0; i < verdict.path.size(); ++i) {
    const PathPiece& piece = verdict.path[i];
    // What came after a gap is what the gap held up.
    const bool is_gap = piece.span_id < 0 && i + 1 < verdict.path.size();
    const std::int64_t named = is_gap ? verdict.path[i + 1].span_id : piece.span_id;
    CausePath& cause = causes[index_of(piece.cause)];
    cause.path.add(piece.dur, named, step.row.id);
    const Span* span = span_of_id(step, piece.span_id);
    if (span == nullptr) continue;
    cause.by_name[*span->name] += piece.dur;
    use_of(*span).path.add(piece.dur, piece.span_id, step.row.id);
    const bool is_forward = span->stage != nullptr && span->stage->phase == "forward";
    if (is_forward) before_forward.add(waiting);
    if (is_program_read(*span, piece, *step.info)) {
      waiting.add(piece.dur, piece.span_id, step.row.id);
    } else {
      waiting = {};
    }
    const bool moves = crosses_drive(*span, *step.info);
    if (!moves && !span->track->links.empty()) continue;
    if (last_work >= 0 && last_work != (moves ? 1 : 0)) turns += 1;
    last_work = moves ? 1 : 0;
    if (!moves) continue;
    const int way = static_cast<int>(span->track->direction);
    if (last_way >= 0 && last_way != way) read_writes += 1;
    last_way = way;
  }
}

void PathSurvey::add_compression(const StepData& step) {
  std::set<std::int64_t> from;
  std::set<std::int64_t> counted;
  Intervals out;
  for (const Span& span : step.spans) {
    if (span.stage_cause() != cause_name(Cause::compression)) continue;
    compress_in_bytes += span.bytes;
    from.insert(span.id);
  }
  for (int hop = 0; hop < kHopsMax && !from.empty(); ++hop) {
    std::set<std::int64_t> next;
    for (const rundb::FlowRow& flow : step.flows) {
      if (!from.contains(flow.from_span) || counted.contains(flow.to_span)) continue;
      const Span* span = span_of_id(step, flow.to_span);
      if (span == nullptr) continue;
      counted.insert(flow.to_span);
      if (span->track->links.empty()) {
        next.insert(flow.to_span);
        continue;
      }
      compress_out_bytes += span->bytes;
      out.add(span->ts, span->end_ts());
    }
    from = std::move(next);
  }
  compress_out_ns += out.sum_ns();
}

}  // namespace sluice::analyze
