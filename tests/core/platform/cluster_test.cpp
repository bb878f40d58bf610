// Tables [cluster] and [[collective]]: what they become, what is refused with file and place, and
// that they are written as they were read.

#include "core/platform/cluster.h"

#include <catch2/catch.hpp>

#include "core/platform/cluster_mesh.h"
#include "core/platform/platform.h"
#include "core/platform/platform_text.h"
#include "tests/core/platform/refused_text.h"

namespace sluice::platform {
namespace {

// Line numbers count from 1, the first line being `name`.
constexpr const char* kGoodCluster = R"(name = "cluster"
[host]
[compute]
matmul = "300 TFLOP/s"
[cluster]
ranks = 8
nodes = 4
nodes_a_leaf = 2
memory = "80 GB"
adamw = "50 Gelem/s"
step = "20 ms"
within = { bandwidth = "200 GB/s", latency = "3 us" }
between = { bandwidth = "100 GB/s" }
spine = { bandwidth = "150 GB/s", latency = "9 us" }
[[collective]]
operation = "all_gather"
group = "8x1"
bandwidth = [["1 MB", "20 GB/s"], ["64 MB", "160 GB/s"]]
)";

std::string cluster_with_line(int line, const std::string& text) {
  return with_line_of(kGoodCluster, line, text);
}

TEST_CASE("a cluster is ranks of nodes under leaf switches, and needs no device") {
  const auto platform = parse_platform(kGoodCluster, "p.toml");
  REQUIRE(platform.ok());
  CHECK(platform->devices.empty());
  REQUIRE(platform->cluster.has_value());
  const Cluster& cluster = *platform->cluster;
  CHECK(cluster.mesh == Scope{8, 4});
  CHECK(cluster.nodes_a_leaf == 2);
  CHECK(cluster.within.bytes_per_s == 200e9);
  CHECK(cluster.within.latency_ns == 3000);
  CHECK(cluster.between.latency_ns == 0);
  CHECK(cluster.spine.bytes_per_s == 150e9);
  CHECK(cluster.memory_bytes == 80'000'000'000);
  CHECK(cluster.update_elements_per_s == 50e9);
  CHECK(cluster.step_ns == 20'000'000);
  REQUIRE(cluster.find(Collective::all_gather, {8, 1}) != nullptr);
  CHECK(cluster.find(Collective::all_gather, {8, 1})->points.back().bytes_per_s == 160e9);
  CHECK(cluster.find(Collective::all_reduce, {8, 1}) == nullptr);
  CHECK(cluster.find(Collective::all_gather, {4, 1}) == nullptr);
}

TEST_CASE("a platform without a cluster has none, and needs a device") {
  const std::string plain = "name = \"p\"\n[host]\n[compute]\nmatmul = \"1 TFLOP/s\"\n";
  CHECK(message_of(plain) == "p.toml:1: device: is missing");
  CHECK(message_of(plain + "[[collective]]\n") ==
        "p.toml:5: collective: needs [cluster], whose ranks do it");
}

TEST_CASE("drives are asked of a platform that has none") {
  const auto platform = parse_platform(kGoodCluster, "p.toml");
  REQUIRE(platform.ok());
  const auto one = with_devices(*platform, 1);
  REQUIRE(!one.ok());
  CHECK(one.error().message() ==
        "platform 'cluster' (p.toml) has no [[device]], and a run keeps its optimizer state on "
        "some");
}

TEST_CASE("a cluster that cannot be is refused with file and place") {
  CHECK(cluster_with_line(6, "ranks = 0") == "p.toml:6: cluster.ranks: 0 is not in 1 to 65536");
  CHECK(cluster_with_line(8, "nodes_a_leaf = 3") ==
        "p.toml:8: cluster.nodes_a_leaf: 4 nodes are not a multiple of it");
  CHECK(cluster_with_line(8, "nodes_a_leaf = 4") ==
        "p.toml:14: cluster.spine: is between leaf switches, and all nodes are under one; give "
        "`nodes_a_leaf`");
  CHECK(cluster_with_line(6, "ranks = 1") ==
        "p.toml:12: cluster.within: is between ranks of a node, and `ranks` is 1");
  CHECK(cluster_with_line(13, "") == "p.toml:5: cluster.between: is missing");
  CHECK(cluster_with_line(13, R"(between = { bandwith = "1 GB/s" })") ==
        "p.toml:13: cluster.between.bandwith: there is no such key (did you mean 'bandwidth'?)");
  CHECK(cluster_with_line(13, R"(between = { bandwidth = "0 GB/s" })")
            .starts_with("p.toml:13: cluster.between.bandwidth: '0 GB/s' is out of range"));
}

TEST_CASE("a measured collective that cannot be is refused with file and place") {
  CHECK(cluster_with_line(16, R"(operation = "allgather")") ==
        "p.toml:16: collective.operation: 'allgather' is no collective (did you mean "
        "'all_gather'?); there are all_gather, reduce_scatter, all_reduce, broadcast");
  CHECK(cluster_with_line(17, R"(group = "9x1")") ==
        "p.toml:17: collective.group: 9x1 is more than the cluster's 8x4");
  CHECK(cluster_with_line(17, R"(group = "1x1")") ==
        "p.toml:17: collective.group: one rank alone sends nothing");
  CHECK(cluster_with_line(17, R"(group = "8")") ==
        "p.toml:17: collective.group: '8' is no scope: write ranks in a node, x and nodes, such as "
        "4x1, each 1 to 65536");
  CHECK(cluster_with_line(18, "bandwidth = []") == "p.toml:18: collective.bandwidth: is empty");
  CHECK(cluster_with_line(18, R"(bandwidth = [["2 MB", "1 GB/s"], ["1 MB", "2 GB/s"]])") ==
        "p.toml:18: collective.bandwidth: sizes rise, and '1 MB' does not");
  CHECK(cluster_with_line(18, R"(bandwidth = [["2 MB"]])")
            .starts_with("p.toml:18: collective.bandwidth: each row is [\"size\", \"bandwidth\"]"));
  CHECK(cluster_with_line(18, R"(bandwidth = [["0 B", "1 GB/s"]])") ==
        "p.toml:18: collective.bandwidth: '0 B' is no size");
  const std::string again =
      "[[collective]]\noperation = \"all_gather\"\ngroup = \"8x1\"\n"
      "bandwidth = [[\"1 MB\", \"20 GB/s\"]]\n";
  CHECK(message_of(kGoodCluster + again) ==
        "p.toml:21: collective.group: all_gather of 8x1 is there already");
}

TEST_CASE("a cluster written as a file and read again is the same cluster") {
  const auto platform = parse_platform(kGoodCluster, "p.toml");
  REQUIRE(platform.ok());
  const std::string text = platform_text(*platform);
  const auto again = parse_platform(text, "again.toml");
  INFO(text);
  REQUIRE(again.ok());
  REQUIRE(again->cluster.has_value());
  CHECK(platform_text(*again) == text);
  CHECK(again->cluster->spine.latency_ns == 9000);
  CHECK(again->cluster->collectives.at(0).points.at(1).size_bytes == 64'000'000);
  CHECK(again->cluster->step_ns == 20'000'000);
}

TEST_CASE("a cluster of fewer ranks has what crosses them and was measured among them") {
  const auto platform = parse_platform(kGoodCluster, "p.toml");
  REQUIRE(platform.ok());
  const Cluster& all = *platform->cluster;
  const auto node = with_mesh(all, {8, 1});
  REQUIRE(node.ok());
  CHECK(node->within.bytes_per_s == all.within.bytes_per_s);
  CHECK(node->between.bytes_per_s == 0);
  CHECK(node->spine.bytes_per_s == 0);
  CHECK(node->find(Collective::all_gather, {8, 1}) != nullptr);
  const auto few = with_mesh(all, {2, 2});
  REQUIRE(few.ok());
  CHECK(few->mesh == Scope{2, 2});
  CHECK(few->nodes_a_leaf == 2);
  CHECK(few->between.bytes_per_s == all.between.bytes_per_s);
  CHECK(few->collectives.empty());
  // A file can say it, too.
  Platform cut = *platform;
  cut.cluster = *few;
  CHECK(parse_platform(platform_text(cut), "cut.toml").ok());
  const auto more = with_mesh(all, {9, 1});
  REQUIRE(!more.ok());
  CHECK(more.error().message().find("9x1 ranks (in a node x nodes) are more than the cluster's") !=
        std::string::npos);
  CHECK(!with_mesh(all, {8, 3}).ok());  // two nodes are under a leaf switch
}

}  // namespace
}  // namespace sluice::platform
