#pragma once
// The facts that a run database has of its run before any operation is looked at: what ran in which
// mode, the machine as tracks in the order in which data flows, what was changed, what was lost.
//
// Thread contract: plain data; load_run_facts uses its reader.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "core/control/knob.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

// A row of the timeline.
struct TrackFacts {
  std::int64_t id = 0;
  std::string group;  // name of the track at the root: what it belongs to
  std::string name;   // without the group's name in front; empty: it is the group's own
  std::string kind;
  bool is_counter = false;
  // The slowest link's on its way, in recorded seconds; 0: it moves nothing, or no limit is stated.
  double limit_bytes_per_s = 0;
  bool crosses_shared_link = false;  // one that devices share
};

// A change of a knob, planned or asked for while the run was live.
struct ChangeMark {
  std::int64_t step = 0;  // the first with the new value
  std::string text;       // "buffers 3 -> 2"
  std::string who;        // "settings": it was planned
};

struct RunFacts {
  analyze::RunInfo info;
  std::vector<TrackFacts> tracks;  // by group in the order of data's way; counters last
  std::vector<ChangeMark> changes;
  // As the record has them, which keeps no words and no help: the values last in force.
  std::vector<control::Knob> knobs;
  std::vector<std::int64_t> device_subgroups;  // by device, when the recording began
  std::vector<rundb::StatRow> stats;
  std::vector<rundb::StatRow> losses;

  // The method in force ("csd · nbuffer · 4 devices"), and all that ever stood in for hardware
  // ("EMULATED CLOCK x12, EMULATED CSDs"); the latter is empty if everything was real.
  std::string method_line;
  std::string stand_ins;

  std::string name() const;  // of the model
  bool is_simulated() const { return info.meta_value("clock") == "simulated"; }
  const std::string& string_of(std::int64_t name_id) const;  // "?" where there is no such name
  const TrackFacts* track(std::int64_t id) const;            // null: not there
  std::string device_name(std::int64_t id) const;
  // 0xRRGGBB of a stage, by the name of its spans; none: no stage has that name.
  std::optional<std::uint32_t> stage_colour(std::string_view name) const;
  std::optional<std::uint32_t> stage_colour(std::int64_t name_id) const;
};

Result<RunFacts> load_run_facts(rundb::Reader& reader);

// Number of lost records, whatever the cause.
std::int64_t lost_count(const std::vector<rundb::StatRow>& losses);

}  // namespace sluice::gui
