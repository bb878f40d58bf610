#include "core/platform/platform_text.h"

#include <algorithm>
#include <span>

#include "base/units.h"

namespace sluice::platform {
namespace {

const char* unit_of(std::string_view kernel) {
  return kernel == "matmul" ? "FLOP/s" : kernel == "checksum" ? "B/s" : "elem/s";
}

std::string rate(double per_second, std::string_view unit) {
  return '"' + rate_text(per_second, unit, 6) + '"';
}

// A name may hold anything; control characters are not for a file that people read.
std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? '?' : c;
  }
  return quoted + "\"";
}

std::string burst_lines(std::string_view direction, const Burst& burst) {
  if (burst.size_bytes == 0) return "";
  return fmt::format("{0}_burst = \"{1} B\"\n{0}_burst_rate = {2}\n", direction, burst.size_bytes,
                     rate(burst.bytes_per_s, "B/s"));
}

std::string link_lines(const Link& link) {
  std::string text = fmt::format(
      "read = {}\nwrite = {}\nduplex = \"{}\"\n", rate(link.read_bytes_per_s, "B/s"),
      rate(link.write_bytes_per_s, "B/s"), link.duplex == Duplex::full ? "full" : "half");
  if (link.sharing == Sharing::in_order) text += "sharing = \"in_order\"\n";
  if (link.latency_ns > 0) text += fmt::format("latency = \"{} ns\"\n", link.latency_ns);
  text += burst_lines("read", link.read_burst) + burst_lines("write", link.write_burst);
  if (link.processor_bytes_per_s > 0) {
    text += fmt::format("processor_bandwidth = {}\n", rate(link.processor_bytes_per_s, "B/s"));
  }
  if (link.chunk_curve.empty()) return text;
  text += "chunk_curve = [\n";
  for (const ChunkPoint& point : link.chunk_curve) {
    text += fmt::format("  [\"{} B\", {}, {}],\n", point.chunk_bytes,
                        rate(point.read_bytes_per_s, "B/s"), rate(point.write_bytes_per_s, "B/s"));
  }
  return text + "]\n";
}

// `count` like engines are one that is as fast as all of them, and the file has the rates of one.
std::string engine_lines(const Platform& platform, const Engine& engine, double count = 1) {
  std::string text;
  for (const auto& [kernel, per_second] : engine.rate) {
    text += fmt::format("{} = {}\n", kernel, rate(per_second / count, unit_of(kernel)));
  }
  if (engine.launch_ns > 0) text += fmt::format("launch = \"{} ns\"\n", engine.launch_ns);
  if (engine.compute_units > 1) text += fmt::format("compute_units = {}\n", engine.compute_units);
  if (engine.wake_ns > 0) {
    text += fmt::format("wake = \"{} ns\"\nwake_takes = \"{} ns\"\n", engine.wake_ns,
                        engine.wake_takes_ns);
  }
  if (engine.processor == platform.host_engine) text += "processor = \"host\"\n";
  return text;
}

std::string bytes_line(const char* key, std::int64_t bytes) {
  return bytes > 0 ? fmt::format("{} = \"{} B\"\n", key, bytes) : "";
}

std::string price_line(double usd) {
  return usd > 0 ? fmt::format("price = \"{} USD\"\n", usd) : "";
}

// Those of no device alone, in the order of the file.
std::string shared_tables(const Platform& platform) {
  std::string text;
  for (std::size_t i = 0; i < platform.links.size(); ++i) {
    const LinkId id{static_cast<std::int32_t>(i)};
    const bool is_devices = std::ranges::any_of(platform.devices, [&](const Device& device) {
      return device.host_route.back() == id || std::ranges::count(device.internal_route, id) > 0;
    });
    const bool is_accelerators = std::ranges::any_of(
        platform.accelerator_routes, [&](const auto& route) { return route.back() == id; });
    if (is_devices || is_accelerators) continue;
    const Link& link = platform.link(id);
    text += "\n[[link]]\nname = " + quoted(link.name) + "\n" + link_lines(link);
  }
  return text;
}

// All links of a route but the last, which is its owner's.
std::string via_line(const Platform& platform, std::span<const LinkId> route) {
  std::vector<std::string> via;
  for (const LinkId link : route.first(route.size() - 1)) {
    via.push_back(quoted(platform.link(link).name));
  }
  return fmt::format("via = [{}]\n", fmt::join(via, ", "));
}

std::string compute_table(const Platform& platform) {
  const Engine& engine = platform.engine(platform.compute_engine);
  const auto& routes = platform.accelerator_routes;
  if (routes.empty()) {
    return "\n[compute]\n" + price_line(platform.compute_price_usd) +
           engine_lines(platform, engine);
  }
  const auto count = static_cast<double>(routes.size());
  return fmt::format("\n[compute]\ncount = {}\n", routes.size()) +
         via_line(platform, routes.front()) + price_line(platform.compute_price_usd / count) +
         engine_lines(platform, engine, count) + "\n[compute.link]\n" +
         link_lines(platform.link(routes.front().back()));
}

std::string device_tables(const Platform& platform, const Device& device) {
  std::string text = fmt::format("\n[[device]]\nname = {}\n", quoted(device.name)) +
                     via_line(platform, device.host_route);
  text += bytes_line("memory", device.memory_bytes) +
          bytes_line("capacity", device.capacity_bytes) +
          bytes_line("endurance", device.endurance_bytes) + price_line(device.price_usd);
  text += "\n[device.drive]\n" + link_lines(platform.link(device.host_route.back()));
  if (device.internal_route.empty()) return text;
  text += "\n[device.internal]\n" + link_lines(platform.link(device.internal_route.back()));
  return text + "\n[device.engine]\n" + engine_lines(platform, platform.engine(device.engine));
}

std::string cluster_link_line(const char* key, const ClusterLink& link) {
  if (link.bytes_per_s == 0) return "";  // nothing crosses it
  return fmt::format("{} = {{ bandwidth = {}, latency = \"{} ns\" }}\n", key,
                     rate(link.bytes_per_s, "B/s"), link.latency_ns);
}

std::string collective_table(const CollectiveCurve& curve) {
  std::string text =
      fmt::format("\n[[collective]]\noperation = \"{}\"\ngroup = \"{}\"\nbandwidth = [\n",
                  collective_name(curve.collective), scope_text(curve.group));
  for (const CollectivePoint& point : curve.points) {
    text += fmt::format("  [\"{} B\", {}],\n", point.size_bytes, rate(point.bytes_per_s, "B/s"));
  }
  return text + "]\n";
}

}  // namespace

std::string platform_text(const Platform& platform) {
  std::string text = "name = " + quoted(platform.name) + "\n" + shared_tables(platform);
  text += "\n[host]\n" + bytes_line("memory", platform.host_memory_bytes) +
          price_line(platform.host_price_usd) +
          engine_lines(platform, platform.engine(platform.host_engine));
  text += compute_table(platform);
  for (const Device& device : platform.devices) text += device_tables(platform, device);
  if (platform.cluster) text += cluster_text(*platform.cluster);
  return text;
}

std::string cluster_text(const Cluster& cluster) {
  std::string text =
      fmt::format("\n[cluster]\nranks = {}\nnodes = {}\nnodes_a_leaf = {}\n", cluster.mesh.ranks,
                  cluster.mesh.nodes, cluster.nodes_a_leaf) +
      cluster_link_line("within", cluster.within) + cluster_link_line("between", cluster.between) +
      cluster_link_line("spine", cluster.spine) + bytes_line("memory", cluster.memory_bytes);
  if (cluster.update_elements_per_s > 0) {
    text += fmt::format("adamw = {}\n", rate(cluster.update_elements_per_s, "elem/s"));
  }
  if (cluster.step_ns > 0) text += fmt::format("step = \"{} ns\"\n", cluster.step_ns);
  for (const CollectiveCurve& curve : cluster.collectives) text += collective_table(curve);
  return text;
}

}  // namespace sluice::platform
