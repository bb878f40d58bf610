#include "profiler/report/detail/timeline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "profiler/analyze/critical_path.h"
#include "profiler/analyze/track_order.h"
#include "profiler/report/detail/counters.h"
#include "profiler/report/detail/lanes.h"

namespace sluice::report::detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPathPiecesMax = 2000;  // of a step

class Timeline {
 public:
  explicit Timeline(const analyze::RunInfo& info) : info_(info) {}

  // `own`: the operations that the path goes over, those of one rank.
  Json step(const ChosenStep& chosen, const analyze::StepData& data, const analyze::StepData& own,
            std::size_t spans_max) {
    std::vector<analyze::Span> spans = data.spans;
    // A span that only touches the step belongs to a neighbour.
    std::erase_if(spans, [&data](const analyze::Span& span) {
      return span.step_id != data.row.id &&
             (span.end_ts() <= data.row.ts || span.ts >= data.row.ts + data.row.dur);
    });
    const std::size_t span_count = spans.size();
    if (spans.size() > spans_max) keep_longest(spans, spans_max);
    std::ranges::sort(spans, {},
                      [](const analyze::Span& span) { return std::pair(span.ts, span.id); });
    std::unordered_map<std::int64_t, std::size_t> index_of_span;
    for (std::size_t i = 0; i < spans.size(); ++i) index_of_span[spans[i].id] = i;
    // The cause that ended last, as an index.
    std::unordered_map<std::int64_t, std::size_t> cause_of_span;
    for (const rundb::FlowRow& flow : data.flows) {
      const auto from = index_of_span.find(flow.from_span);
      if (from == index_of_span.end()) continue;
      const auto [known, is_new] = cause_of_span.try_emplace(flow.to_span, from->second);
      if (spans[known->second].end_ts() < spans[from->second].end_ts())
        known->second = from->second;
      (void)is_new;
    }
    std::map<std::int64_t, Lanes> lanes;
    Json rows = Json::array();
    for (const analyze::Span& span : spans) {
      const std::size_t lane = lanes[span.track->id].place(span.ts, span.dur);
      rows.push_back({track_index(*span.track), name_index(*span.name), lane, span.ts - data.row.ts,
                      span.dur, std::max<TimeNs>(0, span.ts - span.submit_ts), span.bytes,
                      span.padding_bytes, span.subgroup_id, span.layer_id, span.step_id});
      const auto cause = cause_of_span.find(span.id);
      if (cause != cause_of_span.end()) rows.back().push_back(cause->second);
    }
    return {{"step", data.row.id},      {"why", chosen.why}, {"dur", data.row.dur},
            {"span_count", span_count}, {"path", path(own)}, {"spans", std::move(rows)}};
  }

  // In the order in which spans first named them; `order` is that in which they are drawn.
  Json tracks() const {
    const std::map<std::int64_t, std::size_t> order = drawing_order();
    Json rows = Json::array();
    for (const analyze::TrackInfo* track : tracks_) {
      const analyze::TrackInfo& group = analyze::root_of(info_, *track);
      std::string name = track->label;  // without the name of what it belongs to
      if (&group != track && name.starts_with(group.name + " "))
        name.erase(0, group.name.size() + 1);
      rows.push_back({{"group", group.name},
                      {"name", &group == track ? "" : name},
                      {"kind", track->is_waiting() ? track->kind : group.kind},
                      {"order", order.at(track->id)},
                      {"limit", limit_bytes_per_s(*track) / info_.time_scale()}});
    }
    return rows;
  }
  Json names() const { return names_; }

 private:
  static void keep_longest(std::vector<analyze::Span>& spans, std::size_t count) {
    const auto dur = [](const analyze::Span& span) { return span.dur; };
    std::ranges::nth_element(spans, spans.begin() + static_cast<std::ptrdiff_t>(count),
                             std::greater<>(), dur);
    spans.resize(count);
  }

  // Neighbours of the same cause as one.
  static Json path(const analyze::StepData& data) {
    Json rows = Json::array();
    TimeNs end_ts = 0;
    for (const analyze::PathPiece& piece : analyze::verdict_of(data).path) {
      const auto cause = analyze::cause_label(piece.cause);
      if (!rows.empty() && rows.back()[2] == cause && end_ts == piece.ts) {
        rows.back()[1] = rows.back()[1].get<TimeNs>() + piece.dur;
      } else if (rows.size() < kPathPiecesMax) {
        rows.push_back({piece.ts - data.row.ts, piece.dur, cause});
      }
      end_ts = piece.ts + piece.dur;
    }
    return rows;
  }

  // By track that has spans: its place among them, as the window has them.
  std::map<std::int64_t, std::size_t> drawing_order() const {
    std::map<std::int64_t, std::size_t> order;
    for (const std::int64_t id : analyze::drawing_order(info_)) {
      if (index_of_track_.contains(id)) order.emplace(id, order.size());
    }
    return order;
  }

  // The limit of the slowest link on its way; 0: it moves nothing.
  double limit_bytes_per_s(const analyze::TrackInfo& track) const {
    double limit = 0;
    for (const std::int64_t id : track.links) {
      const auto link = std::ranges::find(info_.links, id, &rundb::LinkRow::id);
      if (link == info_.links.end()) continue;
      const double own = track.direction == rundb::Direction::read ? link->read_bytes_per_s
                                                                   : link->write_bytes_per_s;
      if (own > 0 && (limit <= 0 || own < limit)) limit = own;
    }
    return limit;
  }

  std::size_t track_index(const analyze::TrackInfo& track) {
    const auto [found, is_new] = index_of_track_.try_emplace(track.id, tracks_.size());
    if (is_new) tracks_.push_back(&track);
    return found->second;
  }

  std::size_t name_index(const std::string& name) {
    const auto [found, is_new] = index_of_name_.try_emplace(name, names_.size());
    if (is_new) names_.push_back(name);
    return found->second;
  }

  const analyze::RunInfo& info_;
  std::vector<const analyze::TrackInfo*> tracks_;
  std::map<std::int64_t, std::size_t> index_of_track_;
  std::vector<std::string> names_;
  std::map<std::string, std::size_t> index_of_name_;
};

}  // namespace

std::vector<ChosenStep> chosen_steps(const std::vector<rundb::StepRow>& steps) {
  std::vector<ChosenStep> chosen;
  if (steps.empty()) return chosen;
  const auto choose = [&chosen](const rundb::StepRow& row, const char* why) {
    const auto known =
        std::ranges::find(chosen, row.id, [](const ChosenStep& c) { return c.row.id; });
    if (known == chosen.end()) {
      chosen.push_back({row, why});
    } else {
      known->why += std::string(", ") + why;
    }
  };
  std::vector<const rundb::StepRow*> by_dur;
  for (const rundb::StepRow& step : steps) by_dur.push_back(&step);
  std::ranges::stable_sort(by_dur, {}, &rundb::StepRow::dur);
  choose(steps[steps.size() > 1 ? 1 : 0], steps.size() > 1 ? "first full" : "only");
  if (steps.size() > 1) {
    choose(*by_dur[by_dur.size() / 2], "median");
    choose(*by_dur.back(), "slowest");
    choose(steps.back(), "last");
  }
  return chosen;
}

Result<Json> timeline_json(rundb::Reader& reader, const analyze::RunInfo& info,
                           const std::vector<ChosenStep>& chosen, const std::string& why_unknown,
                           Counters counters) {
  Timeline timeline(info);
  Json steps = Json::array();
  std::size_t span_count = 0;
  for (const ChosenStep& one : chosen) {
    const Result<analyze::StepData> data =
        analyze::load_step(reader, info, one.row, analyze::kAllRanks);
    if (!data.ok()) {
      if (data.error().code() == ErrorCode::corrupt && !why_unknown.empty()) continue;
      return data.error();
    }
    span_count += data->spans.size();
    std::optional<analyze::StepData> own;
    if (info.has_all_ranks()) {
      ASSIGN_OR_RETURN(own, analyze::load_step(reader, info, one.row));
    }
    steps.push_back(
        timeline.step(one, *data, own ? *own : *data, kTimelineSpansMax / chosen.size()));
    steps.back()["counters"] = Json::array();
    if (counters == Counters::shown) {
      ASSIGN_OR_RETURN(steps.back()["counters"], counters_json(reader, info, one.row));
    }
  }
  std::string why_empty;
  if (span_count == 0) {
    why_empty = why_unknown.empty() ? "These steps have no operations." : why_unknown;
  }
  return Json{{"names", timeline.names()},
              {"tracks", timeline.tracks()},
              {"steps", std::move(steps)},
              {"why_empty", std::move(why_empty)}};
}

}  // namespace sluice::report::detail
