#include "profiler/analyze/run_data.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>

#include "profiler/analyze/track_order.h"
#include "storage/rundb/catalog_reader.h"
#include "storage/rundb/query.h"
#include "storage/rundb/span_reader.h"

namespace sluice::analyze {
namespace {

double number_of(const std::string& text, double otherwise) {
  double value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

constexpr std::string_view kRouteJoint = " over ";  // as core/runtime/recording.cpp names tracks

std::vector<std::string> links_named(const std::string& route) {
  std::vector<std::string> links;
  for (std::size_t at = 0; at < route.size();) {
    const std::size_t end = std::min(route.find(", ", at), route.size());
    links.push_back(route.substr(at, end - at));
    at = end + 2;
  }
  return links;
}

// "csd0 state_read" where one track has it; where several routes have, "csd0 state_read ·
// internal": the links that not all of them take.
void label_tracks(RunInfo& info) {
  std::map<std::pair<std::int64_t, std::string>, std::vector<TrackInfo*>> by_stem;
  for (auto& [id, track] : info.tracks) {
    by_stem[{track.parent_id, track.name.substr(0, track.name.find(kRouteJoint))}].push_back(
        &track);
  }
  const auto route_of = [](const std::string& stem, const TrackInfo& track) {
    const std::size_t begin = stem.size() + kRouteJoint.size();
    return begin < track.name.size() ? links_named(track.name.substr(begin))
                                     : std::vector<std::string>();
  };
  for (auto& [key, tracks] : by_stem) {
    const std::string& stem = key.second;
    for (TrackInfo* track : tracks) {
      track->label = stem;
      if (tracks.size() == 1) continue;
      const char* joint = " \u00b7 ";
      for (const std::string& link : route_of(stem, *track)) {
        const bool is_common = std::ranges::all_of(tracks, [&](const TrackInfo* other) {
          const std::vector<std::string> links = route_of(stem, *other);
          return std::ranges::find(links, link) != links.end();
        });
        if (is_common) continue;
        track->label += joint + link;
        joint = ", ";
      }
    }
  }
}

// "rank 2: csd0" is of rank 2, as is what stands under it.
void give_ranks(RunInfo& info) {
  for (auto& [id, track] : info.tracks) {
    const std::string& name = root_of(info, track).name;
    const std::size_t digits = std::min(rank_prefix(0).find('0'), name.size());
    int rank = 0;
    std::from_chars(name.data() + digits, name.data() + name.size(), rank);
    if (name.starts_with(rank_prefix(rank))) track.rank = rank;
  }
}

}  // namespace

std::string rank_prefix(int rank) { return fmt::format("rank {}: ", rank); }

std::string RunInfo::meta_value(std::string_view key) const {
  const auto row = std::ranges::find(meta, key, &rundb::MetaRow::key);
  return row == meta.end() ? "" : row->value;
}

double RunInfo::meta_number(std::string_view key, double otherwise) const {
  return number_of(meta_value(key), otherwise);
}

std::string RunInfo::value_in_force(std::string_view key) const {
  return value_at(key, std::numeric_limits<std::int64_t>::max());
}

std::string RunInfo::value_at(std::string_view key, std::int64_t step) const {
  const rundb::KnobChangeRow* before = nullptr;
  for (const rundb::KnobChangeRow& change : knob_changes) {
    if (change.knob != key) continue;
    if (change.step_id > step) return before == nullptr ? change.old_value : before->new_value;
    before = &change;
  }
  return before == nullptr ? meta_value(key) : before->new_value;
}

double RunInfo::number_in_force(std::string_view key, double otherwise) const {
  return number_of(value_in_force(key), otherwise);
}

std::int64_t RunInfo::planned_step_count() const {
  if (is_of_session() || meta_value("clock") == "simulated") return 0;
  return static_cast<std::int64_t>(meta_number("steps", 0));
}

double RunInfo::processor_count() const { return meta_number("processors", 0); }

double RunInfo::time_scale() const {
  return meta_value("clock") == "emulated" ? meta_number("time_scale", 1) : 1;
}

std::string RunInfo::clock_note() const {
  const double scale = time_scale();
  if (scale == 1) return "";
  return scale > 1 ? fmt::format("emulated clock, {:g} times slower than the platform", scale)
                   : fmt::format("emulated clock, {:g} times faster than the platform", 1 / scale);
}

namespace {

// Whoever looks for a track's root then walks no further, also in a file that somebody made.
Status check_tree(const RunInfo& info) {
  for (const auto& [id, track] : info.tracks) {
    auto above = info.tracks.find(track.parent_id);
    for (int count = 0; above != info.tracks.end(); ++count) {
      if (count == kTracksAboveMax) {
        return make_error(ErrorCode::corrupt,
                          "track {} stands under more than {} others, or under itself; no run "
                          "records such tracks: the file is damaged, or another program wrote "
                          "into it",
                          id, kTracksAboveMax);
      }
      above = info.tracks.find(above->second.parent_id);
    }
  }
  return ok_status();
}

}  // namespace

Result<RunInfo> load_run_info(rundb::Reader& reader) {
  RunInfo info;
  rundb::CatalogReader catalog(reader);
  ASSIGN_OR_RETURN(info.meta, reader.meta());
  ASSIGN_OR_RETURN(info.links, catalog.links());
  ASSIGN_OR_RETURN(info.devices, catalog.devices());
  ASSIGN_OR_RETURN(const std::vector<rundb::TrackRow> tracks, catalog.tracks());
  for (const rundb::TrackRow& row : tracks) {
    info.tracks[row.id] = {row.id, row.parent_id, row.kind, row.name, row.name, {}, {}};
  }
  RETURN_IF_ERROR(check_tree(info));
  label_tracks(info);
  if (info.has_all_ranks()) give_ranks(info);
  ASSIGN_OR_RETURN(const std::vector<rundb::TrackLinkRow> crossings, catalog.track_links());
  for (const rundb::TrackLinkRow& row : crossings) {
    TrackInfo& track = info.tracks[row.track_id];
    track.links.push_back(row.link_id);
    track.direction = row.direction;
  }
  ASSIGN_OR_RETURN(const auto strings, catalog.strings());
  for (const auto& [id, text] : strings) info.strings[id] = text;
  ASSIGN_OR_RETURN(std::vector<rundb::StageRow> stages, catalog.stages());
  for (rundb::StageRow& stage : stages) {
    // A page draws with it: nothing else may stand there.
    if (!parse_colour(stage.colour)) stage.colour = colour_text(palette::kUnknown);
    info.stages[stage.name_id] = std::move(stage);
  }
  ASSIGN_OR_RETURN(const std::vector<rundb::ModeRow> modes, reader.modes());
  info.mode = run_mode(modes);
  ASSIGN_OR_RETURN(info.knob_changes, reader.knob_changes());
  return info;
}

namespace {

// Neighbours in the file are mostly of one track and name, so these are looked up when they change.
class NamesOfSpans {
 public:
  explicit NamesOfSpans(const RunInfo& info) : info_(info) {}

  // False: a row is missing.
  bool look_up(const rundb::SpanRow& row) {
    if (track_ == nullptr || track_->id != row.track_id) {
      const auto track = info_.tracks.find(row.track_id);
      track_ = track == info_.tracks.end() ? nullptr : &track->second;
    }
    if (name_ == nullptr || name_id_ != row.name_id) {
      const auto name = info_.strings.find(row.name_id);
      name_ = name == info_.strings.end() ? nullptr : &name->second;
      const auto stage = info_.stages.find(row.name_id);
      stage_ = stage == info_.stages.end() ? nullptr : &stage->second;
      name_id_ = row.name_id;
    }
    return track_ != nullptr && name_ != nullptr;
  }
  const TrackInfo* track() const { return track_; }
  const std::string* name() const { return name_; }
  const rundb::StageRow* stage() const { return stage_; }

 private:
  const RunInfo& info_;
  const TrackInfo* track_ = nullptr;
  const std::string* name_ = nullptr;
  const rundb::StageRow* stage_ = nullptr;
  std::int64_t name_id_ = 0;
};

}  // namespace

Status load_step_into(rundb::Reader& reader, const RunInfo& info, const rundb::StepRow& step,
                      StepData& data, int rank) {
  data.row = step;
  data.info = &info;
  data.spans.clear();
  data.flows.clear();
  NamesOfSpans names(info);
  std::int64_t nameless_id = -1;
  RETURN_IF_ERROR(rundb::SpanReader(reader).each_span_between(
      step.ts, step.ts + step.dur, [&](const rundb::SpanRow& row) {
        if (!names.look_up(row)) {
          nameless_id = row.id;
          return;
        }
        if (rank != kAllRanks && names.track()->rank != rank) return;
        data.spans.push_back({row, names.track(), names.name(), names.stage()});
      }));
  if (nameless_id >= 0) {
    return make_error(ErrorCode::corrupt, "span {} names a track or string that has no row",
                      nameless_id);
  }
  ASSIGN_OR_RETURN(data.flows,
                   rundb::SpanReader(reader).flows_between(step.ts, step.ts + step.dur));
  return ok_status();
}

Result<StepData> load_step(rundb::Reader& reader, const RunInfo& info, const rundb::StepRow& step,
                           int rank) {
  StepData data;
  RETURN_IF_ERROR(load_step_into(reader, info, step, data, rank));
  return data;
}

Result<std::vector<rundb::StepRow>> steps_with_operations(
    rundb::Reader& reader, const std::vector<rundb::StepRow>& steps) {
  TimeNs first_ts = std::numeric_limits<TimeNs>::min();
  RETURN_IF_ERROR(rundb::Query(reader).each_row("SELECT min(ts) FROM span_run WHERE end_ts > ts",
                                                [&first_ts](std::span<const rundb::Cell> row) {
                                                  const auto* ts =
                                                      std::get_if<std::int64_t>(&row[0]);
                                                  if (ts != nullptr) first_ts = *ts;
                                                  return ok_status();
                                                }));
  std::vector<rundb::StepRow> kept;
  std::ranges::copy_if(steps, std::back_inserter(kept), [first_ts](const rundb::StepRow& step) {
    return step.ts + step.dur / 4 >= first_ts;  // its first operation begins a little after it
  });
  return kept.empty() ? steps : kept;
}

}  // namespace sluice::analyze
