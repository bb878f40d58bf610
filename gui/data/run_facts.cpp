#include "gui/data/run_facts.h"

#include <algorithm>
#include <cmath>

#include "base/colour.h"
#include "gui/data/cells.h"
#include "profiler/analyze/link_use.h"
#include "profiler/analyze/track_order.h"
#include "storage/rundb/query.h"

namespace sluice::gui {
namespace {

double limit_of(const analyze::RunInfo& info, const analyze::TrackInfo& track) {
  double limit = 0;
  for (const std::int64_t id : track.links) {
    const auto link = std::ranges::find(info.links, id, &rundb::LinkRow::id);
    if (link == info.links.end()) continue;
    const double own = track.direction == rundb::Direction::read ? link->read_bytes_per_s
                                                                 : link->write_bytes_per_s;
    if (own > 0 && (limit <= 0 || own < limit)) limit = own;
  }
  return limit / info.time_scale();
}

bool crosses_shared_link(const analyze::RunInfo& info, const analyze::TrackInfo& track) {
  return std::ranges::any_of(track.links, [&info](std::int64_t id) {
    const auto link = std::ranges::find(info.links, id, &rundb::LinkRow::id);
    return link != info.links.end() && analyze::is_shared_link(link->name);
  });
}

std::vector<TrackFacts> ordered_tracks(const analyze::RunInfo& info) {
  std::vector<TrackFacts> tracks;
  for (const std::int64_t id : analyze::drawing_order(info)) {
    const analyze::TrackInfo& track = info.tracks.at(id);
    const analyze::TrackInfo& root = analyze::root_of(info, track);
    TrackFacts& facts = tracks.emplace_back();
    facts.id = id;
    facts.group = root.name;
    facts.kind = track.kind;
    facts.is_counter = track.kind == "counter";
    facts.limit_bytes_per_s = limit_of(info, track);
    facts.crosses_shared_link = crosses_shared_link(info, track);
    if (root.id != id) facts.name = track.label;
    for (const char* joint : {" ", ": "}) {
      if (facts.name.starts_with(root.name + joint))
        facts.name.erase(0, root.name.size() + std::string_view(joint).size());
    }
  }
  return tracks;
}

std::vector<ChangeMark> changes_of(const analyze::RunInfo& info) {
  std::vector<ChangeMark> changes;
  for (const rundb::KnobChangeRow& change : info.knob_changes) {
    changes.push_back({change.step_id,
                       change.knob + " " + change.old_value + " \u2192 " + change.new_value,
                       change.who});
  }
  return changes;
}

std::vector<control::Knob> knobs_of(const analyze::RunInfo& info,
                                    const std::vector<rundb::KnobRow>& rows) {
  const auto bound = [](double value) {
    return std::isnan(value) ? std::nullopt : std::optional(value);
  };
  std::vector<control::Knob> knobs;
  for (const rundb::KnobRow& row : rows) {
    if (row.safe_point == "resume") continue;  // no live change
    knobs.push_back({.key = row.name,
                     .type = row.type,
                     .min = bound(row.minimum),
                     .max = bound(row.maximum),
                     .words = {},
                     .values = {},
                     .unit = row.unit,
                     .default_value = row.default_value,
                     .help = {},
                     .value = info.meta_value(row.name)});
    for (const rundb::KnobChangeRow& change : info.knob_changes) {
      if (change.knob == row.name) knobs.back().value = change.new_value;
    }
  }
  return knobs;
}

// A wait of the schedule has the name and the colour of what a verdict calls it.
std::optional<std::uint32_t> wait_colour(const analyze::RunInfo& info, std::string_view name) {
  const bool has_waits =
      std::ranges::any_of(info.tracks, [](const auto& track) { return track.second.is_waiting(); });
  const auto cause = analyze::cause_named(name);
  if (!has_waits || !cause) return std::nullopt;
  return analyze::cause_colour(*cause).dark;
}

Result<std::vector<std::int64_t>> load_device_subgroups(rundb::Reader& reader,
                                                        const analyze::RunInfo& info) {
  std::vector<std::int64_t> counts(info.devices.size(), 0);
  RETURN_IF_ERROR(rundb::Query(reader).each_row_with(
      "SELECT device_id, count(*) FROM subgroup GROUP BY device_id", {},
      [&](std::span<const rundb::Cell> row) {
        const auto device =
            std::ranges::find(info.devices, integer_of(row[0], -1), &rundb::DeviceRow::id);
        if (device != info.devices.end())
          counts[static_cast<std::size_t>(device - info.devices.begin())] = integer_of(row[1]);
        return ok_status();
      }));
  return counts;
}

}  // namespace

std::string RunFacts::name() const {
  const std::string name = info.meta_value("name");
  return name.empty() ? "run without a name" : name;
}

const std::string& RunFacts::string_of(std::int64_t name_id) const {
  static const std::string kUnknown = "?";
  const auto found = info.strings.find(name_id);
  return found == info.strings.end() ? kUnknown : found->second;
}

std::optional<std::uint32_t> RunFacts::stage_colour(std::int64_t name_id) const {
  const auto stage = info.stages.find(name_id);
  if (stage == info.stages.end()) return wait_colour(info, string_of(name_id));
  return parse_colour(stage->second.colour);
}

std::optional<std::uint32_t> RunFacts::stage_colour(std::string_view name) const {
  for (const auto& [name_id, stage] : info.stages) {
    if (string_of(name_id) == name) return stage_colour(name_id);
  }
  return std::nullopt;
}

const TrackFacts* RunFacts::track(std::int64_t id) const {
  const auto found = std::ranges::find(tracks, id, &TrackFacts::id);
  return found == tracks.end() ? nullptr : &*found;
}

std::string RunFacts::device_name(std::int64_t id) const {
  const auto found = std::ranges::find(info.devices, id, &rundb::DeviceRow::id);
  return found == info.devices.end() ? std::to_string(id) : found->name;
}

Result<RunFacts> load_run_facts(rundb::Reader& reader) {
  RunFacts facts;
  ASSIGN_OR_RETURN(facts.info, analyze::load_run_info(reader));
  ASSIGN_OR_RETURN(facts.stats, reader.stats());
  ASSIGN_OR_RETURN(facts.losses, reader.losses());
  ASSIGN_OR_RETURN(const std::vector<rundb::KnobRow> knobs, reader.knobs());
  facts.knobs = knobs_of(facts.info, knobs);
  ASSIGN_OR_RETURN(facts.device_subgroups, load_device_subgroups(reader, facts.info));
  facts.changes = changes_of(facts.info);
  facts.tracks = ordered_tracks(facts.info);
  facts.method_line = facts.info.mode.method;
  facts.stand_ins = facts.info.mode.stand_ins;
  return facts;
}

std::int64_t lost_count(const std::vector<rundb::StatRow>& losses) {
  std::int64_t count = 0;
  for (const rundb::StatRow& loss : losses) count += loss.value;
  return count;
}

}  // namespace sluice::gui
