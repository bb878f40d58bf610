#include "core/session/run_facts.h"

#include <sys/utsname.h>

#include <filesystem>
#include <fstream>

#include "base/process_limits.h"
#include "base/utc_time.h"
#include "core/plan/placement.h"
#include "core/plan/run_plan.h"
#include "core/session/run_record.h"
#include "core/settings/clipping.h"
#include "core/weights/model_folder.h"

namespace sluice::session {
namespace {

const char* pipeline_name(offload::Pipeline pipeline) {
  switch (pipeline) {
    case offload::Pipeline::serial:
      return "serial";
    case offload::Pipeline::handover:
      return "handover";
    case offload::Pipeline::nbuffer:
      break;
  }
  return "nbuffer";
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

// Empty if it cannot be read: it was a moment ago, and a run does not fail for its record. A pipe
// has been read once and would keep a second reader waiting.
std::string text_of_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return "";
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// "layer: backward, gradient_out; any: compress".
std::string set_off_by(const stages::StageInfo& stage) {
  std::string text;
  for (const stages::SetOffBy of :
       {stages::SetOffBy::subgroup, stages::SetOffBy::layer, stages::SetOffBy::any}) {
    std::string names;
    for (const stages::StageTrigger& trigger : stage.set_off_by) {
      if (trigger.stage == stages::Stage::count_ || trigger.of != of) continue;
      names += (names.empty() ? "" : ", ") + std::string(stage_name(trigger.stage));
    }
    if (names.empty()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", word_of(of), names);
  }
  return text;
}

void add_stages(record::Recorder& recorder, collect::RunFacts& facts) {
  for (const stages::StageInfo& stage : stages::kStages) {
    rundb::StageRow row;
    row.kind = word_of(stage.kind);
    row.place = word_of(stage.place);
    if (stage.file) row.drive_file = word_of(*stage.file);
    row.phase = word_of(stage.phase);
    row.cause = word_of(stage.cause);
    row.set_off_by = set_off_by(stage);
    row.every_step = stage.every_step;
    row.colour = colour_text(stage.colour);
    facts.stages.push_back({recorder.intern(stage.name), std::move(row)});
  }
}

// "2 processors", or "1 of 2 processors" where this process may not have all.
std::string processors_text(const ProcessFacts& process) {
  const std::int64_t own = processor_limit(process).count;
  const std::int64_t all = process.machine_processor_count;
  return own < all ? fmt::format("{} of {} processors", own, all)
                   : fmt::format("{} processors", all);
}

void add_meta(const plan::RunPlan& plan, ModeClock clock, collect::RunFacts& facts) {
  utsname system = {};
  uname(&system);
  const ProcessFacts process = process_facts();
  const auto add = [&facts](std::string key, std::string value) {
    facts.meta.push_back({std::move(key), std::move(value)});
  };
  add("sluice_version", SLUICE_VERSION);
  add("name", plan.config.files.name);
  add("started_utc", utc_now());
  add("platform_name", plan.platform.name);
  add("parameters", fmt::format("{}", plan.layout.parameter_count));
  // A simulated run is one of the platform's machine, whatever machine simulated it.
  add("machine", clock == ModeClock::simulated
                     ? plan.platform.name
                     : fmt::format("{}, {}, {} {}", processor_name(), processors_text(process),
                                   system.sysname, system.release));
  const ProcessLimit processors = processor_limit(process);
  add("processors", fmt::format("{}", processors.count));
  if (clock != ModeClock::simulated) {
    add("processor_limit", fmt::format("{} ({})", processors.count, processors.what));
  }
  add("host_name", system.nodename);
  for (const auto& [key, value] : settings::setting_values(plan.config)) add(key, value);
  add("placement", plan::placement_text(plan));
  add("activation_layers",
      activation::layers_text(plan.activations, plan.config.arithmetic.activations));
  if (clock == ModeClock::simulated) add("clock", "simulated");
  // So that a run can be simulated later, whatever has become of the files.
  add("model_text", weights::hugging_face_folder(plan.config.files.model)
                        ? model::model_file_text(model::file_values(plan.shape))
                        : text_of_file(plan.config.files.model));
  add("platform_text", text_of_file(plan.config.files.platform));
}

// "": the state is in fp32.
std::string format_words(const StateFormat& format) {
  switch (format.kind) {
    case StateFormatKind::fp32:
      break;
    case StateFormatKind::exact:
      return " · exact state";
    case StateFormatKind::compact:
      return fmt::format(
          " · compact state, remainders of {} bits: other numbers than "
          "state_format=fp32",
          format.remainder_bits);
  }
  return "";
}

}  // namespace

std::string mode_line(const settings::RunConfig& config, ModeClock clock,
                      const RunHardware& hardware) {
  const auto count = config.offload.devices;
  const bool is_csd = config.offload.method == offload::Method::csd;
  std::string text = fmt::format("{} · {} · {} {}{}", is_csd ? "csd" : "host",
                                 pipeline_name(config.offload.pipeline), count,
                                 is_csd ? "device" : "drive", count == 1 ? "" : "s");
  if (settings::is_clipped_by_subgroup(config)) {
    text += " · clipped by subgroup: other numbers than overlap=off";
  }
  text += format_words(config.offload.state_format);
  if (config.batch.rank_count > 1) text += fmt::format(" · {} ranks", config.batch.rank_count);
  const settings::ShardConfig& shards = config.shards;
  if (shards.state != "1x1") {
    text += fmt::format(", sharded {},{},{}", shards.parameters, shards.gradients, shards.state);
  }
  if (!hardware.ranks.empty())
    text += fmt::format(", communication EMULATED as {}", hardware.ranks);
  if (clock == ModeClock::simulated) return text + " · SIMULATED CLOCK, no data";
  std::string made_of = is_csd ? ", " + hardware.devices : "";
  if (!hardware.computes.empty()) made_of += ", computed by " + hardware.computes;
  if (config.clock.kind == settings::ClockKind::real) return text + " · real clock" + made_of;
  return text + fmt::format(" · EMULATED CLOCK x{:g}{}", config.clock.time_scale, made_of);
}

collect::RunFacts run_facts(const plan::RunPlan& plan, ModeClock clock, record::Recorder& recorder,
                            const state::Layout& layout) {
  collect::RunFacts facts;
  add_meta(plan, clock, facts);
  const platform::Platform& platform = plan.platform;
  for (std::size_t i = 0; i < platform.devices.size(); ++i) {
    const platform::Device& device = platform.devices[i];
    facts.devices.push_back({static_cast<std::int64_t>(i), device.name,
                             device.internal_route.empty() ? "drive" : "csd", device.memory_bytes,
                             device.capacity_bytes});
  }
  for (std::size_t i = 0; i < platform.links.size(); ++i) {
    const platform::Link& link = platform.links[i];
    facts.links.push_back({static_cast<std::int64_t>(i), link.name, link.read_bytes_per_s,
                           link.write_bytes_per_s, link.latency_ns,
                           link.duplex == platform::Duplex::full});
  }
  for (std::int32_t s = 0; s < layout.geometry().subgroup_count(); ++s) {
    const SubgroupId id{s};
    facts.subgroups.push_back({s, layout.geometry().first_element(id),
                               layout.geometry().element_count(id), index_of(layout.device(id))});
  }
  facts.knobs = knob_rows();
  add_stages(recorder, facts);
  return facts;
}

}  // namespace sluice::session
