#pragma once
// Rows of the run database as plain structs; storage/rundb/detail/tables.h declares their tables.
// Columns, units and meanings: docs/rundb_schema.md. In ids, -1 is none and becomes NULL; in
// losses, norms and values, NaN becomes NULL. Every member has an initializer, so that a designated
// one may leave it out without a warning.
//
// A new column: its member here, its line in detail/tables.h, sql/tables.sql with a new
// kSchemaVersion, and docs/rundb_schema.md.
//
// Thread contract: plain data.

#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/units.h"

namespace sluice::rundb {

// `read`: out of a drive, towards the host or the update engine; `write`: into it.
enum class Direction : std::uint8_t { read, write };
inline constexpr std::array<std::string_view, 2> kDirectionWords = {"read", "write"};
enum class Severity : std::uint8_t { info, loss, error };
inline constexpr std::array<std::string_view, 3> kSeverityWords = {"info", "loss", "error"};
enum class SpanStatus : std::uint8_t { ok, failed, cancelled };

// A value as SQLite has it; the first is NULL.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;

struct MetaRow {
  std::string key = {};
  std::string value = {};
};

struct StringRow {
  std::int64_t id = 0;
  std::string value = {};
};

struct DeviceRow {
  std::int64_t id = 0;
  std::string name = {};
  std::string kind = {};            // "csd", "drive"
  std::int64_t memory_bytes = 0;    // of the update engine; 0 = none or not stated
  std::int64_t capacity_bytes = 0;  // 0 = not stated
};

inline constexpr std::array<std::string_view, 2> kDuplexWords = {"half", "full"};

struct LinkRow {
  std::int64_t id = 0;
  std::string name = {};
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
  TimeNs latency_ns = 0;
  bool full_duplex = true;
};

// One link of the route that the spans of a track take.
struct TrackLink {
  std::int64_t link_id = 0;
  Direction direction = Direction::read;
  auto operator<=>(const TrackLink&) const = default;
};

struct TrackLinkRow {
  std::int64_t track_id = 0;
  std::int64_t link_id = 0;
  Direction direction = Direction::read;
};

// The meaning of a span's name. Words: docs/rundb_schema.md; "" becomes NULL.
struct StageRow {
  std::int64_t name_id = 0;
  std::string kind = {};        // "transfer", "kernel"
  std::string place = {};       // "compute", "host", "device", "accelerator", "peer", "ranks"
  std::string drive_file = {};  // "state", "gradients"
  std::string phase = {};       // "forward", "backward", "parameters"
  std::string cause = {};       // of a verdict, whatever runs it
  std::string set_off_by = {};  // "layer: backward, gradient_out"
  bool every_step = true;
  std::string colour = {};  // "#4e79a7"
};

// The line that says in which mode steps ran, from a step on.
struct ModeRow {
  TimeNs ts = 0;
  std::int64_t step_id = 0;
  std::string line = {};
};

// Key of meta: what the records of processes that `sluice record` ran together have in common.
inline constexpr std::string_view kRecordedTogether = "recording";

struct TrackRow {
  std::int64_t id = 0;
  std::int64_t parent_id = -1;
  std::string kind = {};
  std::string name = {};
};

struct SubgroupRow {
  std::int64_t id = 0;
  std::int64_t first = 0;  // element of the flattened parameters
  std::int64_t count = 0;  // elements
  std::int64_t device_id = -1;
};

// A setting that may change in a live run. Files keep one row a name.
struct KnobRow {
  std::string name = {};
  std::string type = {};  // "integer", "word", ...
  std::string unit = {};
  double minimum = std::numeric_limits<double>::quiet_NaN();  // NaN: unbounded, or no number
  double maximum = std::numeric_limits<double>::quiet_NaN();
  std::string default_value = {};
  std::string safe_point = {};  // "step": between two steps
};

struct KnobChangeRow {
  TimeNs ts = 0;
  std::int64_t step_id = 0;  // the first with the new value
  std::string knob = {};     // by name, which has a KnobRow
  std::string old_value = {};
  std::string new_value = {};
  std::string who = {};  // "settings": the run's own settings, or what they planned
};

// How well the emulated clock kept to the model, in one stage, from a step on until the next step
// that has rows. Added to what stands there. What it means: storage/rundb/lateness.h.
struct LatenessRow {
  std::int64_t step_id = 0;
  std::string stage = {};  // by name, which has a StringRow
  std::int64_t operations = 0;
  std::int64_t late = 0;   // of them
  TimeNs modelled_ns = 0;  // that the model gives them, summed
  TimeNs late_ns = 0;      // by how much longer the late ones took, summed
};

// The share of a step's time that was spent on a cause. The rows of a step add up to 1.
struct VerdictRow {
  std::int64_t step_id = 0;
  std::string cause = {};
  double share = 0;
};

struct StepRow {
  std::int64_t id = 0;
  TimeNs ts = 0;
  TimeNs dur = 0;
  double loss = 0;
  double grad_norm = 0;
  double loss_scale = 1;
  double lr = 0;
  std::int64_t tokens = 0;
  bool skipped = false;
};

// The loss of the text that is held out, with the weights that a step left.
struct ValidationRow {
  TimeNs ts = 0;  // when it was known
  std::int64_t step_id = 0;
  double loss = 0;
  std::int64_t tokens = 0;
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // nan: the model does not classify
};

struct SpanRow {
  std::int64_t id = 0;  // 0: the next one
  std::int64_t track_id = 0;
  std::int64_t name_id = 0;
  TimeNs submit_ts = 0;
  TimeNs ts = 0;
  TimeNs dur = 0;
  std::int64_t step_id = -1;
  std::int64_t subgroup_id = -1;
  std::int64_t device_id = -1;
  std::int64_t layer_id = -1;
  std::int64_t bytes = 0;
  std::int64_t padding_bytes = 0;
  SpanStatus status = SpanStatus::ok;

  TimeNs end_ts() const { return ts + dur; }
};

// Where spans of one track stand side by side, all from `first_id` to `last_id`: the index of table
// span.
struct SpanRunRow {
  std::int64_t first_id = 0;
  std::int64_t last_id = 0;
  std::int64_t track_id = 0;
  TimeNs ts = 0;
  TimeNs end_ts = 0;
  int lod_level = 0;  // the finest in which its spans have rows: storage/rundb/lod.h
};

// Where a batch's spans are, and their runs: the index of table span_run.
struct SpanBatchRow {
  std::int64_t first_id = 0;
  std::int64_t last_id = 0;
  TimeNs ts = 0;
  TimeNs end_ts = 0;
};

struct FlowRow {
  std::int64_t from_span = 0;
  std::int64_t to_span = 0;
};

struct CounterRow {
  std::int64_t track_id = 0;
  TimeNs ts = 0;
  double value = 0;
};

// A clock and the calendar's, read together.
struct ClockRow {
  std::string clock = {};
  TimeNs ts = 0;           // of the run's clock
  TimeNs realtime_ts = 0;  // nanoseconds since 1970
};

// When a rank of several compared its clock with rank 0's: as a stretch of its recording began, or
// as it ended.
enum class OffsetAt : std::uint8_t { begin, end };
inline constexpr std::array<std::string_view, 2> kOffsetAtWords = {"begin", "end"};

// How far a rank's clock is from rank 0's. A time `t` of this rank is `t + offset` of rank 0, give
// or take `bound`.
struct ClockOffsetRow {
  OffsetAt at = OffsetAt::begin;
  TimeNs ts = 0;  // of this rank's clock
  TimeNs offset = 0;
  TimeNs bound = 0;
};

// A count of the recording about itself: above all what it lost, by cause.
struct StatRow {
  std::string name = {};
  Severity severity = Severity::info;
  std::int64_t value = 0;
  std::string description = {};
};

// Processor samples (profiler/sample), whose tables are made with the first batch that has some.
// Ids of threads, functions and calls begin at 1 in what a writer is given; the file goes on with
// those of the stretches before.
struct SampledThreadRow {
  std::int64_t id = 0;
  std::int64_t tid = 0;
  std::string name = {};  // as the system has it; several threads may have the same
};

struct SampledFunctionRow {
  std::int64_t id = 0;
  std::string name = {};     // "libm.so.6+0x12a0" where the library does not say; "" unknown code
  std::string library = {};  // "" unknown code
};

// A function with whoever called it, and so on: a chain of calls is known by its innermost one.
struct CallRow {
  std::int64_t id = 0;
  std::int64_t caller_id = -1;  // another call; -1: the outermost that is known
  std::int64_t function_id = 0;
};

struct CallSampleRow {
  std::int64_t thread_id = 0;
  TimeNs ts = 0;
  std::int64_t cpu = 0;
  std::int64_t call_id = 0;
};

// A stretch of a thread's life, and how long it was in which state: the three are all of it.
struct ProcessorTimeRow {
  std::int64_t thread_id = 0;
  TimeNs ts = 0;
  TimeNs dur = 0;
  TimeNs running = 0;
  TimeNs preempted = 0;  // it could have run, and another thread had the processor
  TimeNs waiting = 0;    // for something to happen, and from then on for a processor

  TimeNs end_ts() const { return ts + dur; }
};

struct SampleRows {
  std::vector<SampledThreadRow> threads = {};  // in place of what stands there of them
  std::vector<SampledFunctionRow> functions = {};
  std::vector<CallRow> calls = {};
  std::vector<CallSampleRow> samples = {};
  std::vector<ProcessorTimeRow> times = {};

  bool is_empty() const {
    return threads.empty() && functions.empty() && calls.empty() && samples.empty() &&
           times.empty();
  }
};

// The facts of a run that are known before its first step.
struct Facts {
  std::vector<MetaRow> meta = {};
  std::vector<DeviceRow> devices = {};
  std::vector<LinkRow> links = {};
  std::vector<StageRow> stages = {};
  std::vector<SubgroupRow> subgroups = {};
  std::vector<KnobRow> knobs = {};
};

// Rows that become visible to readers together.
struct Batch {
  std::vector<StepRow> steps = {};
  std::vector<SpanRow> spans = {};
  std::vector<FlowRow> flows = {};
  std::vector<CounterRow> counters = {};
  std::vector<StatRow> stats = {};  // added to what stands there
  std::vector<KnobChangeRow> knob_changes = {};
  std::vector<VerdictRow> verdicts = {};  // in place of what stands there of those steps
  std::vector<ClockRow> clocks = {};
  std::vector<ClockOffsetRow> clock_offsets = {};
  std::vector<ModeRow> modes = {};
  std::vector<LatenessRow> lateness = {};  // added to what stands there
  std::vector<ValidationRow> validations = {};
  SampleRows samples = {};
};

}  // namespace sluice::rundb
