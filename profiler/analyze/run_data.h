#pragma once
// A run as the analysis sees it: what the database says of the machine and of each step, names and
// tracks resolved. Read in one snapshot, so it is of one moment of a live run.
//
// Thread contract: plain data; load_* are free functions that use their reader.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/run_mode.h"
#include "storage/rundb/reader.h"

namespace sluice::analyze {

// The setting `model` of a run that has no model file (core/plan/run_plan.h).
inline constexpr std::string_view kNoModelFile = "none";
// Why no step of such a run has phases.
inline constexpr const char* kNoPhasesOfSession =
    "The program that made this run computes forward and backward itself, so no step has phases.";

// A record of all ranks as one (profiler/report/merged_record.h) has the steps, devices, settings
// and changes of rank 0, and the operations of all. This key of its meta says of how many.
inline constexpr std::string_view kMergedRanks = "merged_ranks";
// And this one, how far each time of another rank may be from the true one by rank 0's clock, in
// ns.
inline constexpr std::string_view kMergedBound = "merged_bound_ns";
// There, tracks at the root and what is named after them begin with this: "rank 2: ".
std::string rank_prefix(int rank);
// There, the kind of the track that has a span for each step of another rank than the first.
inline constexpr std::string_view kRankSteps = "step";

// Tracks of runs stand at most two deep, those of other programs (profiler/c_api) hardly more.
inline constexpr int kTracksAboveMax = 64;

struct TrackInfo {
  std::int64_t id = 0;
  std::int64_t parent_id = -1;
  std::string kind;
  std::string name;
  // For a row of its own: the name without its route, or with as much of it as tells it from
  // others.
  std::string label;
  // Links that a span of this track crosses; empty: it carries kernels.
  std::vector<std::int64_t> links;
  rundb::Direction direction = rundb::Direction::read;  // over those links
  int rank = 0;  // whose it is, in a record of all ranks; else 0

  // Time in which the schedule could do nothing but wait, named by the cause: no operation, but on
  // the path of a verdict.
  bool is_waiting() const { return kind == "waiting"; }
  // Not an operation of the schedule: the recorder's own work, what a GPU or a program's modules
  // did within operations, or another rank's steps.
  bool is_beside_schedule() const {
    return kind == "recorder" || kind == "cuda" || kind == "module" || kind == kRankSteps;
  }
};

struct RunInfo {
  std::vector<rundb::MetaRow> meta;
  std::vector<rundb::LinkRow> links;  // by id
  std::vector<rundb::DeviceRow> devices;
  std::unordered_map<std::int64_t, TrackInfo> tracks;
  std::unordered_map<std::int64_t, std::string> strings;
  std::unordered_map<std::int64_t, rundb::StageRow> stages;  // by name_id
  RunMode mode;
  std::vector<rundb::KnobChangeRow> knob_changes;  // in order of steps

  bool has_all_ranks() const { return !meta_value(kMergedRanks).empty(); }
  // A program that computes its own gradients recorded it: how many steps it makes is not known
  // before, losses are what it says, and no run like it can be begun from here.
  bool is_of_session() const { return meta_value("model") == kNoModelFile; }
  // Recorded by `sluice record` or through the C interface: no settings of ours are in it.
  bool is_of_another_program() const { return meta_value("model").empty(); }
  // "" where the key is not there.
  std::string meta_value(std::string_view key) const;
  double meta_number(std::string_view key, double otherwise) const;
  // The value of a setting: as the run began, or what the last change of that knob made of it.
  std::string value_in_force(std::string_view key) const;
  // The same in a step: before its first change a knob is what that was made from.
  std::string value_at(std::string_view key, std::int64_t step) const;
  double number_in_force(std::string_view key, double otherwise) const;
  // 0: nobody has said, as of a session, which ends when its program says so, and of a simulation,
  // which has as many as were asked for.
  std::int64_t planned_step_count() const;
  double processor_count() const;  // of the machine that ran it; 0: not known
  // Recorded seconds for one of the platform's: above 1 only by the emulated clock.
  double time_scale() const;
  // Whose seconds the times and bandwidths of this run are, where they are not the platform's:
  // "emulated clock, 12 times slower than the platform". Else empty.
  std::string clock_note() const;
};

// A row of table span, with the rows that its ids stand for.
struct Span : rundb::SpanRow {
  const TrackInfo* track = nullptr;
  const std::string* name = nullptr;
  const rundb::StageRow* stage = nullptr;  // what the name means; null: the producer did not say

  // "" where its name is no stage: the cause that holds wherever it ran.
  std::string_view stage_cause() const {
    return stage == nullptr ? std::string_view() : std::string_view(stage->cause);
  }
  bool reads_drive() const {
    return stage != nullptr && !stage->drive_file.empty() && !track->links.empty() &&
           track->direction == rundb::Direction::read;
  }
};

// All that was under way in a step, in order of ids. Spans may begin before it and end after it.
struct StepData {
  rundb::StepRow row;
  const RunInfo* info = nullptr;
  std::vector<Span> spans;
  std::vector<rundb::FlowRow> flows;  // into those spans, and some others
};

inline constexpr int kAllRanks = -1;

Result<RunInfo> load_run_info(rundb::Reader& reader);
// `info` outlives what is returned. A record of all ranks gives the operations of one: what its
// own record would say is said of it.
Result<StepData> load_step(rundb::Reader& reader, const RunInfo& info, const rundb::StepRow& step,
                           int rank = 0);
// The same in the memory of the step before, for whoever looks at many.
Status load_step_into(rundb::Reader& reader, const RunInfo& info, const rundb::StepRow& step,
                      StepData& data, int rank = 0);

// Those whose operations are in the record: a run with record_steps keeps only the last ones. All,
// where that leaves none.
Result<std::vector<rundb::StepRow>> steps_with_operations(rundb::Reader& reader,
                                                          const std::vector<rundb::StepRow>& steps);

}  // namespace sluice::analyze
