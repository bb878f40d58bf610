#include "core/shard/cluster_links.h"

#include <utility>

#include "base/check.h"

namespace sluice::shard {

platform::LinkId add_link(platform::Platform& platform, std::string name, double bytes_per_s,
                          TimeNs latency_ns) {
  platform::Link link;
  link.name = std::move(name);
  link.read_bytes_per_s = link.write_bytes_per_s = bytes_per_s;
  link.latency_ns = latency_ns;
  platform.links.push_back(std::move(link));
  return platform::LinkId{static_cast<std::int32_t>(platform.links.size() - 1)};
}

ClusterLinks add_cluster_links(platform::Platform& platform) {
  CHECK(platform.cluster.has_value());
  const auto add = [&platform](const char* name, const platform::ClusterLink& link) {
    return link.bytes_per_s > 0 ? add_link(platform, name, link.bytes_per_s, 0)
                                : platform::LinkId{-1};
  };
  ClusterLinks links;
  links.within = add("rank.within", platform.cluster->within);
  links.between = add("node.between", platform.cluster->between);
  links.spine = add("leaf.spine", platform.cluster->spine);
  return links;
}

std::vector<platform::LinkId> route_over(const ClusterLinks& links, platform::LinkId own,
                                         const CollectiveCost& cost) {
  std::vector<platform::LinkId> route = {own};
  route.insert(route.end(), static_cast<std::size_t>(cost.within_times), links.within);
  route.insert(route.end(), static_cast<std::size_t>(cost.between_times), links.between);
  route.insert(route.end(), static_cast<std::size_t>(cost.spine_times), links.spine);
  return route;
}

}  // namespace sluice::shard
