#pragma once
// All settings of a run: what RUN.toml says, then what `--set key=value` says, checked once.
// docs/settings.md is their page and is made from the table here (`settings()`), as is --help.
//
// Defaults stand in the structs below, everything else about a setting in the table in
// core/settings/setting_table.cpp; a key exists because it is in that table.
//
// Thread contract: plain data.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parameter_span.h"
#include "base/status.h"
#include "base/units.h"
#include "core/model/activations.h"
#include "core/offload/offload_options.h"
#include "core/optimizer/loss_scale.h"
#include "core/optimizer/update_rule.h"
#include "profiler/record/record.h"
#include "storage/io/file.h"
#include "storage/io/io_engine.h"
#include "storage/state/durability.h"

namespace sluice::control {
struct Knob;
}

namespace sluice::model {
enum class Documents : std::uint8_t;  // core/model/window_shape.h
}

namespace sluice::settings {

// The value of "auto" among sizes in bytes.
inline constexpr std::int64_t kAutomatic = -1;

enum class ClockKind : std::uint8_t { real, emulated };
// The kind of the devices of method=csd: files and host memory, or cards that XRT drives.
enum class Backend : std::uint8_t { emulated, xrt };
using offload::GradientTier;
using offload::Method;
using offload::ParameterTier;
using offload::Pipeline;
using offload::Wire;
using optimizer::RuleKind;

// Where the state of a run may lie: that of one rank, and of each of many, before + rank + behind.
struct StatePlaces {
  std::string alone;
  std::string before_rank;
  std::string behind_rank;
  std::string of_rank(int rank) const { return before_rank + std::to_string(rank) + behind_rank; }
};

// How the file `text` is read; automatic: by its first bytes (docs/tokens.md).
enum class TextFormat : std::uint8_t { automatic, bytes, sluice, llm_c, nanogpt };

// Where the run reads from and writes to. Absolute, or relative to the working directory; those
// that stand in the file have been taken relative to the file's folder.
struct RunFiles {
  std::string name;             // empty in the file: the file's name without ".toml"
  std::string model;            // model file (core/model/model_shape.h)
  std::string platform;         // platform file (core/platform/platform.h)
  std::string text;             // the text to learn
  std::string output;           // folder; empty: out/NAME
  std::string state_directory;  // empty: OUTPUT/state; of one rank of many its own
  std::string database;         // empty: OUTPUT/run.db
  StatePlaces state_places;     // no setting: OUTPUT/rank-2/state, or state_dir/rank-2
  TextFormat text_format = TextFormat::automatic;
  std::string optimizer_state;  // folder that a new state's arrays begin with; empty: at zero
};

struct BatchConfig {
  std::int64_t batch = 8;
  std::int64_t sequence = 128;
  std::int64_t grad_accum_steps = 1;
  // No setting: the launcher says it (core/train/ranks.h). Each rank has as many micro-batches.
  std::int64_t rank_count = 1;
};

// Over how many ranks what is sharded, as text such as "4x1" (core/plan/rank_share.h makes scopes
// of it).
struct ShardConfig {
  std::string mesh = "auto";  // as the launcher has placed the ranks
  std::string parameters = "1x1";
  std::string gradients = "1x1";
  std::string state = "1x1";
  std::string overlap = "all";
  double patience = 60;  // seconds that a rank waits for another one
  // No settings: the launcher says them. This rank, and how many there are on each machine; 0: not
  // the same number on each.
  std::int32_t rank = 0;
  std::int32_t node_ranks = 1;
};

// Linear warm-up to update.lr, then half a cosine down to min_lr at schedule_steps.
struct ScheduleConfig {
  std::int64_t steps = 300;
  std::int64_t seed = 0;
  double min_lr = 0;
  std::int64_t warmup_steps = 0;
  std::int64_t schedule_steps = 0;  // 0: as many as steps
};

struct ArithmeticConfig {
  ParameterKind precision = ParameterKind::bf16;
  double max_grad_norm = 1.0;                // 0: no clipping
  std::int64_t max_skipped_steps = 10;       // in a row, with nothing left that could help (fp16)
  model::LayerActivations activations;       // keep
  std::int64_t activation_buffer_bytes = 0;  // 0: twice the widest layer's
  std::int64_t activation_host_bytes = 0;    // of what is offloaded, that stays in host memory
};

struct ObjectiveConfig {
  model::Documents documents{};  // together
  // The masked objective, of families that look both ways (core/data/hidden_tokens.h).
  std::int64_t mask_token = -1;  // -1: not said
  double mask_share = 0.15;
  // That of families with a decoder (core/data/corrupted_spans.h).
  std::int64_t sentinel_token = -1;  // -1: not said
  double span_share = 0.15;
  double span_length = 3;
};

// Low-rank adapters in the place of all parameters (docs/lora.md).
struct LoraConfig {
  std::int64_t rank = 0;  // 0: all parameters are trained
  double alpha = 16;
  std::string targets;  // empty: those that PEFT takes for the family
  std::string adapter;  // folder that a new state's adapters begin with; empty: as new ones
};

struct ValidationConfig {
  std::int64_t every_steps = 50;  // 0: only at the end
  std::int64_t batches = 8;
  double fraction = 0.05;
};

struct SampleConfig {
  std::int64_t tokens = 200;
  std::string prompt = "In the beginning";
  double temperature = 0.8;  // 0: always the likeliest token
};

// The part of the offload that is the run's to know, and no schedule's; the rest is core/offload's
// own.
struct OffloadConfig : offload::OffloadSettings {
  Backend backend = Backend::emulated;
  std::string xclbin;           // what the cards are programmed with (backend=xrt)
  double device_patience = 30;  // seconds (backend=xrt)
  std::int64_t devices = 1;
  std::int64_t accelerators = 0;      // 0: all of the platform's
  std::vector<double> device_shares;  // empty: even; else one a device
  std::int64_t subgroup_elements = 4 << 20;
  std::int64_t density_warmup_steps = 0;
  bool replan = false;
  std::int64_t bounce_memory_bytes = 32 << 20;
};

struct StorageConfig {
  io::IoEngineKind engine = io::IoEngineKind::io_uring;
  io::Caching caching = io::Caching::direct;
  std::int64_t queue_depth = 64;
  std::int64_t io_bytes = 1 << 20;
  state::Durability durability = state::Durability::every_commit;
};

struct ClockConfig {
  ClockKind kind = ClockKind::real;
  double time_scale = 1.0;  // emulated only: modelled hardware is this many times slower
};

struct ResourceConfig {
  std::int64_t host_memory_bytes = 0;         // 0: all that this process may have
  std::int64_t device_memory_bytes = 0;       // 0: what the platform says
  std::string device = "cpu";                 // that computes (core/model/device_name.h)
  std::int64_t accelerator_memory_bytes = 0;  // 0: all that it has
  std::int64_t threads = 0;                   // 0: one a processor
  std::int64_t worker_threads = 0;            // 0: as many as threads
};

struct RunConfig {
  RunFiles files;
  BatchConfig batch;
  ScheduleConfig schedule;
  optimizer::UpdateOptions update;  // lr is the peak of the schedule
  optimizer::LossScaleOptions loss_scale;
  ArithmeticConfig arithmetic;
  ObjectiveConfig objective;
  LoraConfig lora;
  ValidationConfig validation;
  SampleConfig sample;
  OffloadConfig offload;
  ShardConfig shards;
  StorageConfig storage;
  ClockConfig clock;
  ResourceConfig resources;
  record::Level record = record::Level::all;
  std::int64_t record_steps = 0;       // kept in full; 0: all
  std::int64_t record_size_bytes = 0;  // of the database; 0: any
  std::int64_t record_samples = 0;     // a second, of a thread that runs; 0: none
  // The settings that were given and have no effect, a sentence each that begins with the place;
  // for whoever talks to the person that gave them.
  std::vector<std::string> warnings;
};

// `overrides` are the "key=value" of --set, applied in order after the file; paths among them are
// relative to the working directory. Errors (ErrorCode::config; not_found for the file itself)
// begin with `FILE:LINE:` or `OPTION key=value:`.
Result<RunConfig> load_run_config(const std::string& path, std::span<const std::string> overrides);
Result<RunConfig> parse_run_config(std::string_view toml, const std::string& path_for_messages,
                                   std::span<const std::string> overrides,
                                   const std::string& option = "--set");

// The same over `start` in the place of a file. The optimizer's lr, eps and weight_decay are those
// that suit it, unless `overrides` say them. Errors about `start` begin with `path_for_messages`.
Result<RunConfig> override_run_config(const RunConfig& start, const std::string& path_for_messages,
                                      std::span<const std::string> overrides,
                                      const std::string& option = "--set");

// Whether "key=value" is a setting, and the value one of its own; what it goes with is not looked
// at. Errors begin with `OPTION key=value:`.
Status check_setting(const std::string& text, const std::string& option);

// The density of the step after `step` committed ones. The warm-up falls to the density in four
// equal stretches: 1, density^(1/4), density^(1/2), density^(3/4) (after Deep Gradient Compression,
// ICLR 2018, section 3.3, whose stretches are epochs at 25, 6.25, 1.5625 and 0.4 %).
double density_at(std::int64_t step, double density, std::int64_t warmup_steps);

// `config` with knobs changed: settings that may change between the steps of a run, as "key=value".
// Errors begin with `OPTION key=value:`; a setting that is no knob is refused with those that are.
Result<RunConfig> with_knobs(const RunConfig& config, std::span<const std::string> changes,
                             const std::string& option);

enum class SettingType : std::uint8_t {
  integer,
  number,
  boolean,
  text,
  path,
  bytes,
  word,
  shares,
  layers
};

// The results that hang on a setting, and so who is to have the same value (core/session/recipe.h).
enum class Decides : std::uint8_t {
  origin,    // what a state is of: on all ranks, and on each resume
  numbers,   // what is learnt from there on: on all ranks; a resume with another one is recorded
  together,  // what ranks do with one another, or what is seen of it: on all ranks
  own        // where things lie and how long they take, and no number: each rank has its own
};

// One setting as people read it: for --help, docs/settings.md and the run database.
struct SettingInfo {
  std::string key;
  std::string section;  // the heading it stands under; RUN.toml may use the same as a table name
  SettingType type = SettingType::integer;
  Decides decides = Decides::own;
  std::string values;          // "1 to 64", "host, csd", "text"
  std::string unit;            // "steps", "bytes"; may be empty
  std::string default_value;   // as it would be written; "required" if there is none
  std::string other_defaults;  // of other optimizers: "sgd 0.1, adagrad 0.01"; mostly empty
  std::string help;            // one sentence
};

// The settings that may change between two steps of a run, with their values in `config`.
std::vector<control::Knob> knobs(const RunConfig& config);

// One that has another value from a step on.
struct KnobChange {
  std::string knob;
  std::string from;
  std::string to;
};
// Between two settings of one run, in the order of knobs().
std::vector<KnobChange> knob_changes(const RunConfig& before, const RunConfig& after);

const std::vector<SettingInfo>& settings();
std::string describe_settings();  // a plain table, for --help
std::string settings_markdown();  // docs/settings.md

// Whether state_format may be fp32 or exact, between which no number changes.
bool may_be_exact(const RunConfig& config);

bool is_setting(std::string_view key);
// The value of this key in `config`, as --set would take it. The key is one of the table.
std::string value_of(const RunConfig& config, std::string_view key);
// Every key with its value in `config`, in the order of the table.
std::vector<std::pair<std::string, std::string>> setting_values(const RunConfig& config);

}  // namespace sluice::settings
