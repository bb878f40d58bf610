#include "core/platform/platform.h"

#include <algorithm>

#include "base/id_vector.h"
#include "core/platform/platform_parser.h"
#include "core/toml_file/toml_file.h"

namespace sluice::platform {
namespace {

// Which links or engines stay when some devices go, and the numbers they get.
template <typename Id>
class Renumbering {
 public:
  explicit Renumbering(std::size_t count) : new_index_(static_cast<std::int32_t>(count), kKept) {}
  void drop(Id id) { new_index_[id] = kDropped; }
  void keep(Id id) { new_index_[id] = kKept; }

  template <typename T>
  void apply(std::vector<T>& list) {
    std::size_t kept = 0;
    for (const Id id : ids_of(new_index_)) {
      if (new_index_[id] == kDropped) continue;
      const auto old = static_cast<std::size_t>(index_of(id));
      new_index_[id] = static_cast<std::int32_t>(kept);
      if (kept != old) list[kept] = std::move(list[old]);
      ++kept;
    }
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(kept), list.end());
  }
  Id of(Id id) const { return index_of(id) < 0 ? id : Id{new_index_[id]}; }

 private:
  static constexpr std::int32_t kDropped = -1;
  static constexpr std::int32_t kKept = 0;
  IdVector<Id, std::int32_t> new_index_;
};
using LinkNumbers = Renumbering<LinkId>;
using EngineNumbers = Renumbering<EngineId>;

// Applies both to the platform's lists, and to all that names what is in them.
void renumber(Platform& platform, LinkNumbers& links, EngineNumbers& engines) {
  links.apply(platform.links);
  engines.apply(platform.engines);
  const auto renumber_route = [&links](std::vector<LinkId>& route) {
    for (LinkId& link : route) link = links.of(link);
  };
  for (Device& device : platform.devices) {
    for (auto* route : {&device.host_route, &device.memory_route, &device.internal_route})
      renumber_route(*route);
    device.engine = engines.of(device.engine);
  }
  for (auto& route : platform.accelerator_routes) renumber_route(route);
  platform.host_engine = engines.of(platform.host_engine);
  platform.compute_engine = engines.of(platform.compute_engine);
}

}  // namespace

Result<Platform> load_platform(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, toml_file::read(path, "platform file"));
  return parse_platform(text, path);
}

Result<Platform> parse_platform(std::string_view toml, const std::string& path_for_messages) {
  return PlatformParser().parse(toml, path_for_messages);
}

std::string kind_of(const Platform& platform, const std::string& name) {
  for (const Device& device : platform.devices) {
    if (name.starts_with(device.name + ".")) return name.substr(device.name.size() + 1);
  }
  if (name.starts_with("accelerator") && name.ends_with(".link")) return "accelerator";
  return name;
}

Result<Platform> with_devices(const Platform& platform, std::int32_t device_count) {
  const auto have = static_cast<std::int32_t>(platform.devices.size());
  if (have == 0) {
    return make_error(
        ErrorCode::config,
        "platform '{}' ({}) has no [[device]], and a run keeps its optimizer state on "
        "some",
        platform.name, platform.source);
  }
  if (device_count < 1 || device_count > have) {
    return make_error(ErrorCode::config,
                      "{} devices were asked for; platform '{}' ({}) has {}: ask for {}",
                      device_count, platform.name, platform.source, have,
                      have > 1 ? fmt::format("1 to {}", have) : "1");
  }
  Platform fewer = platform;
  LinkNumbers links(platform.links.size());
  EngineNumbers engines(platform.engines.size());
  for (std::int32_t i = have - 1; i >= 0; --i) {
    const Device& device = platform.devices[static_cast<std::size_t>(i)];
    const bool stays = i < device_count;
    const auto mark = [stays](auto& list, auto id) { stays ? list.keep(id) : list.drop(id); };
    for (const auto& route : {device.host_route, device.memory_route, device.internal_route})
      for (const LinkId link : route) mark(links, link);
    if (index_of(device.engine) >= 0) mark(engines, device.engine);
  }
  for (const auto& route : platform.accelerator_routes)
    for (const LinkId link : route) links.keep(link);
  fewer.devices.resize(static_cast<std::size_t>(device_count));
  renumber(fewer, links, engines);
  return fewer;
}

Result<Platform> with_accelerators(const Platform& platform, std::int32_t count) {
  const auto have = static_cast<std::int32_t>(platform.accelerator_routes.size());
  if (count == have) return platform;
  if (count < 0 || count > have) {
    return make_error(ErrorCode::config,
                      "{} accelerators were asked for; platform '{}' ({}) has {}", count,
                      platform.name, platform.source, have);
  }
  Platform fewer = platform;
  LinkNumbers links(platform.links.size());
  EngineNumbers engines(platform.engines.size());
  for (std::int32_t i = count; i < have; ++i)  // the last link is its own
    links.drop(platform.accelerator_routes[static_cast<std::size_t>(i)].back());
  fewer.accelerator_routes.resize(static_cast<std::size_t>(count));
  renumber(fewer, links, engines);
  const double share = static_cast<double>(std::max(count, 1)) / have;
  Engine& engine = fewer.engine(fewer.compute_engine);
  for (auto& [kernel, rate] : engine.rate) rate *= share;
  fewer.compute_price_usd *= share;
  return fewer;
}

Platform with_an_accelerator(const Platform& platform) {
  if (!platform.accelerator_routes.empty()) return platform;
  constexpr TimeNs kLatencyNs = 5'000;  // assumed
  Platform more = platform;
  more.links.push_back({.name = "accelerator0.link",
                        .read_bytes_per_s = kAddedAcceleratorRate,
                        .write_bytes_per_s = kAddedAcceleratorRate,
                        .latency_ns = kLatencyNs});
  more.accelerator_routes.push_back({LinkId{static_cast<std::int32_t>(more.links.size()) - 1}});
  return more;
}

}  // namespace sluice::platform
