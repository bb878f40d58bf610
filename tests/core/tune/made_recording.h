#pragma once
// A run database as a run on a sample machine would leave it: one simulated step, several times
// over.

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "core/control/knob.h"
#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"
#include "core/tune/detail/fit_simulation.h"
#include "storage/rundb/writer.h"

namespace sluice::tune {

inline std::string sample_file(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/" + name + ".toml";
}

struct RecordingOptions {
  std::string model = "models/gpt2-124m";
  std::string platform = "platforms/laptop";
  std::vector<std::string> settings = {};
  std::string clock = "emulated";
  int step_count = 6;
  std::set<std::int64_t> skipped = {};            // steps, by id; the first is 0
  std::vector<std::int64_t> resumed_before = {};  // steps, by id
  std::vector<rundb::KnobChangeRow> knob_changes = {};
  std::vector<rundb::StatRow> stats = {};
  bool has_texts = true;       // of model and platform
  bool has_operations = true;  // else recorded with record=steps
};

class MadeRecording {
 public:
  explicit MadeRecording(RecordingOptions options) : options_(std::move(options)) {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-tune-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    folder_ = pattern;
    std::vector<std::string> settings = {"pipeline=handover", "subgroup_elements=20000000"};
    settings.insert(settings.end(), options_.settings.begin(), options_.settings.end());
    auto config = simulate::simulation_config(sample_file(options_.model),
                                              sample_file(options_.platform), settings);
    INFO((config.ok() ? "" : config.error().message()));
    REQUIRE(config.ok());
    plan_ = plan::plan_run(*config).value();
    step_ = detail::simulate_charged(plan_).value();
    REQUIRE(step_.times.steps.size() == 1);
    write();
  }
  ~MadeRecording() { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/run.db"; }
  const plan::RunPlan& plan() const { return plan_; }
  const detail::ChargedStep& step() const { return step_; }
  TimeNs step_dur_ns() const {
    return step_.times.steps.front().end_ns - step_.times.steps.front().start_ns;
  }

 private:
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }

  rundb::Facts facts() const {
    rundb::Facts facts;
    facts.links = {{.id = 0, .name = "any"}};
    facts.meta = {{"parameters", fmt::format("{}", plan_.layout.parameter_count)}};
    for (const auto& [key, value] : settings::setting_values(plan_.config)) {
      facts.meta.push_back({key, key == "clock" ? options_.clock : value});
    }
    if (options_.has_texts) {
      facts.meta.push_back({"model_text", text_of(sample_file(options_.model))});
      facts.meta.push_back({"platform_text", text_of(sample_file(options_.platform))});
    }
    for (const control::Knob& knob : settings::knobs(plan_.config)) {
      facts.knobs.push_back({.name = knob.key, .type = knob.type});
    }
    return facts;
  }

  void write() {
    auto writer = rundb::Writer::create(path(), rundb::IfExists::refuse).value();
    REQUIRE(writer->write_facts(facts()).ok());
    rundb::Batch batch;
    batch.stats = options_.stats;
    batch.knob_changes = options_.knob_changes;
    batch.modes = {{0, 0, "a mode"}};
    batch.clocks = {{.clock = "monotonic", .ts = 0, .realtime_ts = 1}};
    for (std::int64_t id = 0; id < options_.step_count; ++id) add_step(*writer, id, batch);
    REQUIRE(writer->append(batch).ok());
    REQUIRE(writer->close().ok());
  }

  void add_step(rundb::Writer& writer, std::int64_t id, rundb::Batch& batch) const {
    const double scale = plan_.config.clock.time_scale;
    const TimeNs first_ns = step_.times.steps.front().start_ns;
    const auto scaled = [&](TimeNs ts) {
      return static_cast<TimeNs>(static_cast<double>(ts - first_ns + id * step_dur_ns()) * scale);
    };
    const TimeNs begin = scaled(first_ns);
    const bool is_resumed = std::ranges::count(options_.resumed_before, id) > 0;
    if (is_resumed) {
      batch.clocks.push_back({.clock = "monotonic", .ts = begin, .realtime_ts = 1 + id});
    }
    batch.steps.push_back({.id = id,
                           .ts = begin,
                           .dur = scaled(first_ns + step_dur_ns()) - begin,
                           .skipped = options_.skipped.contains(id)});
    if (!options_.has_operations) return;
    for (const OperationTimes& operation : step_.times.operations) {
      const std::string name(stages::stage_name(operation.stage));
      const std::vector<rundb::TrackLink> links = {
          {0, operation.direction == platform::Direction::read ? rundb::Direction::read
                                                               : rundb::Direction::write}};
      const TimeNs start = scaled(operation.start_ns);
      batch.spans.push_back({.track_id = writer.track_id(std::nullopt, "device", name, links),
                             .name_id = writer.string_id(name),
                             .submit_ts = start,
                             .ts = start,
                             .dur = scaled(operation.end_ns) - start,
                             .step_id = id,
                             .subgroup_id = index_of(operation.subgroup),
                             .device_id = index_of(operation.device),
                             .layer_id = index_of(operation.layer),
                             .bytes = operation.size_bytes});
    }
  }

  RecordingOptions options_;
  std::string folder_;
  plan::RunPlan plan_;
  detail::ChargedStep step_;
};

}  // namespace sluice::tune
