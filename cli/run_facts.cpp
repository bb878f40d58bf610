#include "cli/run_facts.h"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "base/utc_time.h"
#include "cli/run_record.h"

namespace sluice::cli {
namespace {

using platform::Direction;
using runtime::Stage;

const char* pipeline_name(train::Pipeline pipeline) {
  switch (pipeline) {
    case train::Pipeline::serial:
      return "serial";
    case train::Pipeline::handover:
      return "handover";
    case train::Pipeline::nbuffer:
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

// Empty if it cannot be read: it was a moment ago, and a run does not fail for its record.
std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void add_track_links(const train::RunPlan& plan, const runtime::RecordingSink& sink,
                     collect::RunFacts& facts) {
  const bool is_csd = plan.config.offload.method == train::Method::csd;
  const auto add_track = [&](record::TrackId track, std::span<const platform::LinkId> route,
                             Direction direction) {
    for (const platform::LinkId link : route) {
      facts.track_links.push_back(
          {track, platform::index_of(link),
           direction == Direction::read ? rundb::Direction::read : rundb::Direction::write});
    }
  };
  const auto add = [&](DeviceId id, Stage stage, std::span<const platform::LinkId> route,
                       Direction direction) { add_track(sink.track(id, stage), route, direction); };
  for (std::size_t d = 0; d < plan.platform.devices.size(); ++d) {
    const DeviceId id{static_cast<std::int32_t>(d)};
    const platform::Device& device = plan.platform.devices[d];
    const auto& state_route = is_csd ? device.internal_route : device.host_route;
    add(id, Stage::gradient_down, device.host_route, Direction::write);
    add(id, Stage::state_read, state_route, Direction::read);
    add(id, Stage::gradient_read, state_route, Direction::read);
    add(id, Stage::state_write, state_route, Direction::write);
    add(id, Stage::parameters_up, device.memory_route, Direction::read);
    add(id, Stage::create_state, device.host_route, Direction::write);
    add(id, Stage::load_state, device.host_route, Direction::read);
  }
  for (std::size_t a = 0; a < plan.platform.accelerator_routes.size(); ++a) {
    const std::span<const platform::LinkId> route = plan.platform.accelerator_routes[a];
    add_track(sink.accelerator_track(a, Stage::layer_in), route, Direction::write);
    add_track(sink.accelerator_track(a, Stage::peer_in), route.last(1), Direction::write);
    add_track(sink.accelerator_track(a, Stage::gradient_out), route, Direction::read);
  }
}

void add_meta(const train::RunPlan& plan, ModeClock clock, collect::RunFacts& facts) {
  utsname system = {};
  uname(&system);
  const auto add = [&facts](std::string key, std::string value) {
    facts.meta.push_back({std::move(key), std::move(value)});
  };
  add("sluice_version", SLUICE_VERSION);
  add("name", plan.config.files.name);
  add("mode", mode_line(plan.config, clock));
  add("started_utc", utc_now());
  add("platform_name", plan.platform.name);
  add("parameters", fmt::format("{}", plan.layout.parameter_count));
  add("machine", fmt::format("{}, {} processors, {} {}", processor_name(),
                             std::thread::hardware_concurrency(), system.sysname, system.release));
  add("processors", fmt::format("{}", std::thread::hardware_concurrency()));
  add("host_name", system.nodename);
  for (const auto& [key, value] : train::setting_values(plan.config)) add(key, value);
  if (clock == ModeClock::simulated) add("clock", "simulated");
  // So that a run can be simulated later, whatever has become of the files.
  add("model_text", text_of_file(plan.config.files.model));
  add("platform_text", text_of_file(plan.config.files.platform));
}

}  // namespace

std::string mode_line(const train::RunConfig& config, ModeClock clock) {
  const auto devices = config.offload.devices;
  const bool is_csd = config.offload.method == train::Method::csd;
  const std::string text = fmt::format("{} · {} · {} {}{}", is_csd ? "csd" : "host",
                                       pipeline_name(config.offload.pipeline), devices,
                                       is_csd ? "device" : "drive", devices == 1 ? "" : "s");
  if (clock == ModeClock::simulated) return text + " · SIMULATED CLOCK, no data";
  const char* csds = is_csd ? ", EMULATED CSDs (files, host memory)" : "";
  if (config.clock.kind == train::ClockKind::real) return text + " · real clock" + csds;
  return text + fmt::format(" · EMULATED CLOCK x{:g}{}", config.clock.time_scale, csds);
}

collect::RunFacts run_facts(const train::RunPlan& plan, ModeClock clock,
                            const runtime::RecordingSink& sink, const state::Layout& layout) {
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
  add_track_links(plan, sink, facts);
  return facts;
}

}  // namespace sluice::cli
