#include "core/platform/platform_parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/nearest.h"
#include "core/platform/cluster_parser.h"
#include "core/platform/link_parser.h"
#include "core/platform/platform_change.h"

namespace sluice::platform {
namespace {

const std::array<KernelKey, 10> kUpdateKernels = {{{"adamw", "elem/s"},
                                                   {"adamw_exact", "elem/s"},
                                                   {"adamw_compact", "elem/s"},
                                                   {"sgd", "elem/s"},
                                                   {"sgd_exact", "elem/s"},
                                                   {"sgd_compact", "elem/s"},
                                                   {"adagrad", "elem/s"},
                                                   {"adagrad_exact", "elem/s"},
                                                   {"adagrad_compact", "elem/s"},
                                                   {"decompress", "elem/s"}}};
// Besides updates.
const std::array<KernelKey, 3> kHostKernels = {
    {{"compress", "elem/s"}, {"stage", "elem/s"}, {"checksum", "B/s"}}};
const std::array<KernelKey, 3> kComputeKernels = {
    {{"matmul", "FLOP/s"}, {"elementwise", "elem/s"}, {"compress", "elem/s"}}};

std::vector<KernelKey> host_kernels() {
  std::vector<KernelKey> kernels(kUpdateKernels.begin(), kUpdateKernels.end());
  kernels.insert(kernels.end(), kHostKernels.begin(), kHostKernels.end());
  return kernels;
}

// A factor of the table's, 1 where it has none.
Result<double> parse_scale(const TomlTable& table, Scaled scaled) {
  const std::string key = scale_key(scaled);
  if (!table.has(key)) return 1.0;
  ASSIGN_OR_RETURN(const double factor, table.number(key));
  const Status status = check_scale(factor);
  if (!status.ok()) return table.error(key, status.error().message());
  return factor;
}

// `scale`: scale_link or scale_engine of that part.
template <typename Part>
Status scale_by(const TomlTable& table, Scaled scaled, Part& part, Status (*scale)(Part&, double)) {
  ASSIGN_OR_RETURN(const double factor, parse_scale(table, scaled));
  const Status status = scale(part, factor);
  return status.ok() ? status : table.error(scale_key(scaled), status.error().message());
}

Status parse_compute_units(const TomlTable& table, Engine& engine) {
  if (!table.has("compute_units")) return ok_status();
  ASSIGN_OR_RETURN(const std::int64_t count, table.integer("compute_units"));
  if (count < 1 || count > kComputeUnitsMax) {
    return table.error("compute_units",
                       fmt::format("{} is not in 1 to {}", count, kComputeUnitsMax));
  }
  engine.compute_units = static_cast<std::int32_t>(count);
  return ok_status();
}

}  // namespace

Result<Platform> PlatformParser::parse(std::string_view toml, const std::string& path) {
  static const std::array<std::string, 11> kKeys = {
      "name",         "link",        "host",           "compute",    "device",    "cluster",
      "engine_scale", "media_scale", "internal_scale", "link_scale", "collective"};
  ASSIGN_OR_RETURN(const TomlTable root, TomlTable::parse(toml, path));
  RETURN_IF_ERROR(root.allow_only(kKeys));
  platform_.source = path;
  ASSIGN_OR_RETURN(platform_.name, root.text("name"));
  RETURN_IF_ERROR(parse_shared_links(root));
  RETURN_IF_ERROR(parse_host(root));
  RETURN_IF_ERROR(parse_compute(root));
  ASSIGN_OR_RETURN(platform_.cluster, parse_cluster(root));
  RETURN_IF_ERROR(parse_devices(root));
  RETURN_IF_ERROR(parse_scales_of_all(root));
  return std::move(platform_);
}

// Ranks may keep all in their memory.
Status PlatformParser::parse_devices(const TomlTable& root) {
  if (platform_.cluster && !root.has("device")) return ok_status();
  ASSIGN_OR_RETURN(const auto groups, root.tables("device"));
  for (const TomlTable& group : groups) RETURN_IF_ERROR(parse_device_group(group));
  return ok_status();
}

// When all is there; they multiply those of the groups and links.
Status PlatformParser::parse_scales_of_all(const TomlTable& root) {
  for (const Scaled scaled : kScaled) {
    if (!root.has(scale_key(scaled))) continue;
    ASSIGN_OR_RETURN(const double factor, parse_scale(root, scaled));
    const Status status = scale_all(platform_, scaled, factor);
    if (!status.ok()) return root.error(scale_key(scaled), status.error().message());
  }
  return ok_status();
}

Status PlatformParser::parse_shared_links(const TomlTable& root) {
  if (!root.has("link")) return ok_status();
  ASSIGN_OR_RETURN(const auto tables, root.tables("link"));
  for (const TomlTable& table : tables) {
    ASSIGN_OR_RETURN(Link link, parse_link(table, {"name", "link_scale"}));
    RETURN_IF_ERROR(scale_by(table, Scaled::link, link, scale_link));
    ASSIGN_OR_RETURN(std::string name, parse_name(table, "name"));
    if (shared_links_.contains(name))
      return table.error("name", fmt::format("a link '{}' is there already", name));
    shared_links_[name] = add_link(std::move(link), name);
  }
  return ok_status();
}

Status PlatformParser::parse_host(const TomlTable& root) {
  ASSIGN_OR_RETURN(const TomlTable table, root.table("host"));
  ASSIGN_OR_RETURN(Engine engine,
                   parse_engine(table, host_kernels(), {"memory", "price", "wake", "wake_takes"}));
  RETURN_IF_ERROR(parse_wake(table, engine));
  ASSIGN_OR_RETURN(platform_.host_price_usd, parse_optional_price(table, "price"));
  ASSIGN_OR_RETURN(platform_.host_memory_bytes, parse_optional_bytes(table, "memory"));
  platform_.host_engine = add_engine(std::move(engine), "host");
  return ok_status();
}

Status PlatformParser::parse_compute(const TomlTable& root) {
  ASSIGN_OR_RETURN(const TomlTable table, root.table("compute"));
  ASSIGN_OR_RETURN(Engine engine, parse_engine(table, kComputeKernels,
                                               {"processor", "price", "count", "via", "link",
                                                "wake", "wake_takes"}));
  RETURN_IF_ERROR(parse_wake(table, engine));
  ASSIGN_OR_RETURN(platform_.compute_price_usd, parse_optional_price(table, "price"));
  RETURN_IF_ERROR(parse_processor(table, engine));
  if (!engine.rate.contains("matmul")) return table.error("matmul", "is missing");
  RETURN_IF_ERROR(parse_accelerators(table, engine));
  platform_.compute_engine = add_engine(std::move(engine), "compute");
  return ok_status();
}

// Without a link, forward and backward run in host memory. Several accelerators are one engine that
// is as fast as all of them: they share each layer's work evenly.
Status PlatformParser::parse_accelerators(const TomlTable& table, Engine& engine) {
  if (!table.has("link")) {
    for (const char* key : {"via", "count"}) {
      if (table.has(key)) return table.error(key, "needs `link`, the accelerator's own");
    }
    return ok_status();
  }
  if (table.has("processor"))
    return table.error("processor", "is the host's; an accelerator with a `link` has its own");
  ASSIGN_OR_RETURN(const TomlTable link_table, table.table("link"));
  ASSIGN_OR_RETURN(const Link link, parse_link(link_table));
  std::vector<LinkId> shared;
  if (table.has("via")) {
    ASSIGN_OR_RETURN(shared, parse_route(table));
  }
  std::int64_t count = 1;
  if (table.has("count")) {
    ASSIGN_OR_RETURN(count, table.integer("count"));
    if (count < 1 || count > kAcceleratorCountMax)
      return table.error("count", fmt::format("{} is not in 1 to {}", count, kAcceleratorCountMax));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::vector<LinkId>& route = platform_.accelerator_routes.emplace_back(shared);
    route.push_back(add_link(link, fmt::format("accelerator{}.link", i)));
  }
  for (auto& [kernel, rate] : engine.rate) rate *= static_cast<double>(count);
  platform_.compute_price_usd *= static_cast<double>(count);
  return ok_status();
}

Status PlatformParser::parse_wake(const TomlTable& table, Engine& engine) {
  if (table.has("wake") != table.has("wake_takes")) {
    return table.error(table.has("wake") ? "wake" : "wake_takes",
                       "stands with the other of `wake` and `wake_takes`: so much work after "
                       "idling takes so long");
  }
  ASSIGN_OR_RETURN(engine.wake_ns, parse_optional_duration(table, "wake"));
  ASSIGN_OR_RETURN(engine.wake_takes_ns, parse_optional_duration(table, "wake_takes"));
  if (engine.wake_takes_ns >= engine.wake_ns) return ok_status();
  return table.error("wake_takes", "is less than `wake`: after idling work takes longer, not less");
}

Result<Engine> PlatformParser::parse_engine(const TomlTable& table,
                                            std::span<const KernelKey> kernels,
                                            std::vector<std::string> other_keys) const {
  std::vector<std::string> keys = std::move(other_keys);
  keys.push_back("launch");
  for (const KernelKey& kernel : kernels) keys.push_back(kernel.name);
  RETURN_IF_ERROR(table.allow_only(keys));
  Engine engine;
  ASSIGN_OR_RETURN(engine.launch_ns, parse_optional_duration(table, "launch"));
  for (const KernelKey& kernel : kernels) {
    if (!table.has(kernel.name)) continue;
    const auto parse = [&kernel](std::string_view written) -> Result<double> {
      ASSIGN_OR_RETURN(const double per_second, parse_rate(written, kernel.unit));
      return check_rate(per_second, written);
    };
    ASSIGN_OR_RETURN(engine.rate[kernel.name], table.quantity(kernel.name, parse));
  }
  return engine;
}

// [host] is read before all that may name it.
Status PlatformParser::parse_processor(const TomlTable& table, Engine& engine) const {
  if (!table.has("processor")) return ok_status();
  ASSIGN_OR_RETURN(const std::string name, table.text("processor"));
  if (name != "host") {
    return table.error("processor",
                       fmt::format("'{}' is not \"host\"; leave the key out for an engine that "
                                   "shares its processor with no other",
                                   name));
  }
  engine.processor = platform_.host_engine;
  return ok_status();
}

Status PlatformParser::parse_device_group(const TomlTable& table) {
  static const std::array<std::string, 13> kKeys = {
      "name",  "count",    "via",    "memory",       "capacity",    "endurance",     "price",
      "drive", "internal", "engine", "engine_scale", "media_scale", "internal_scale"};
  RETURN_IF_ERROR(table.allow_only(kKeys));
  Device pattern;
  ASSIGN_OR_RETURN(pattern.name, parse_name(table, "name"));
  ASSIGN_OR_RETURN(pattern.host_route, parse_route(table));
  ASSIGN_OR_RETURN(pattern.memory_bytes, parse_optional_bytes(table, "memory"));
  ASSIGN_OR_RETURN(pattern.capacity_bytes, parse_optional_bytes(table, "capacity"));
  ASSIGN_OR_RETURN(pattern.endurance_bytes, parse_optional_bytes(table, "endurance"));
  ASSIGN_OR_RETURN(pattern.price_usd, parse_optional_price(table, "price"));

  ASSIGN_OR_RETURN(const TomlTable drive_table, table.table("drive"));
  ASSIGN_OR_RETURN(Link drive, parse_link(drive_table));
  RETURN_IF_ERROR(scale_by(table, Scaled::media, drive, scale_link));
  if (!table.has("engine") && !table.has("internal")) {
    if (pattern.memory_bytes > 0)
      return table.error("memory", "a device without `engine` is a plain drive and has no memory");
    for (const char* key : {"engine_scale", "internal_scale"}) {
      if (table.has(key)) return table.error(key, "a plain drive has nothing of the kind");
    }
    return add_devices(table, pattern, drive, nullptr, nullptr);
  }
  // An engine that no link reaches, or that has nowhere to put a subgroup, can do nothing.
  ASSIGN_OR_RETURN(const TomlTable internal_table, table.table("internal"));
  ASSIGN_OR_RETURN(Link internal, parse_link(internal_table));
  RETURN_IF_ERROR(scale_by(table, Scaled::internal, internal, scale_link));
  ASSIGN_OR_RETURN(const TomlTable engine_table, table.table("engine"));
  ASSIGN_OR_RETURN(Engine engine,
                   parse_engine(engine_table, kUpdateKernels, {"processor", "compute_units"}));
  RETURN_IF_ERROR(scale_by(table, Scaled::engine, engine, scale_engine));
  RETURN_IF_ERROR(parse_compute_units(engine_table, engine));
  RETURN_IF_ERROR(parse_processor(engine_table, engine));
  if (!engine.rate.contains("adamw") && !engine.rate.contains("sgd") &&
      !engine.rate.contains("adagrad")) {
    return table.error("engine", "runs no update; give `adamw`, `sgd` or `adagrad`");
  }
  if (pattern.memory_bytes == 0)
    return table.error("memory", "is missing; a device with `engine` needs it");
  return add_devices(table, pattern, drive, &internal, &engine);
}

Result<std::vector<LinkId>> PlatformParser::parse_route(const TomlTable& group) const {
  ASSIGN_OR_RETURN(const auto names, group.texts("via"));
  std::vector<LinkId> route;
  for (const std::string& name : names) {
    const auto found = shared_links_.find(name);
    if (found == shared_links_.end()) {
      std::vector<std::string> known;
      for (const auto& [known_name, id] : shared_links_) known.push_back(known_name);
      return group.error(
          "via", fmt::format("there is no [[link]] '{}'{}", name, did_you_mean(name, known)));
    }
    if (std::find(route.begin(), route.end(), found->second) != route.end())
      return group.error("via", fmt::format("lists '{}' twice; a route crosses a link once", name));
    route.push_back(found->second);
  }
  return route;
}

Status PlatformParser::add_devices(const TomlTable& group, const Device& pattern, const Link& drive,
                                   const Link* internal, const Engine* engine) {
  std::optional<std::int64_t> count;
  if (group.has("count")) {
    ASSIGN_OR_RETURN(count, group.integer("count"));
    if (*count < 1 || *count > kDeviceCountMax)
      return group.error("count", fmt::format("{} is not in 1 to {}", *count, kDeviceCountMax));
  }
  for (std::int64_t i = 0; i < count.value_or(1); ++i) {
    Device device = pattern;
    if (count) device.name += std::to_string(i);
    if (!device_names_.insert(device.name).second)
      return group.error("name", fmt::format("a device '{}' is there already", device.name));
    if (std::ssize(platform_.devices) == kDeviceCountMax)
      return group.error("count", fmt::format("more than {} devices in all", kDeviceCountMax));
    if (engine != nullptr) device.memory_route = pattern.host_route;
    const LinkId drive_id = add_link(drive, device.name + ".drive");
    device.host_route.push_back(drive_id);
    if (engine != nullptr) {
      device.internal_route = {drive_id, add_link(*internal, device.name + ".internal")};
      device.engine = add_engine(*engine, device.name + ".engine");
    }
    platform_.devices.push_back(std::move(device));
  }
  return ok_status();
}

LinkId PlatformParser::add_link(Link link, std::string name) {
  link.name = std::move(name);
  platform_.links.push_back(std::move(link));
  return LinkId{static_cast<std::int32_t>(platform_.links.size() - 1)};
}

EngineId PlatformParser::add_engine(Engine engine, std::string name) {
  engine.name = std::move(name);
  platform_.engines.push_back(std::move(engine));
  return EngineId{static_cast<std::int32_t>(platform_.engines.size() - 1)};
}

}  // namespace sluice::platform
