#include "core/calibrate/ranks/cluster_file.h"

#include <catch2/catch.hpp>

#include "core/platform/platform_text.h"

namespace sluice::calibrate {
namespace {

using platform::Collective;

const std::string kMachine =
    "# Mine.\n"
    "name = \"mine\"\n"
    "[host]  # two sockets\n"
    "[compute]\n"
    "matmul = \"1 TFLOP/s\"\n"
    "[[device]]\n"
    "name = \"drive\"\n"
    "via = []\n"
    "[device.drive]\n"
    "read = \"3 GB/s\"\n"
    "write = \"2 GB/s\"\n"
    "duplex = \"half\"\n"
    "chunk_curve = [\n"
    "  [\"4096 B\", \"1 GB/s\", \"1 GB/s\"],\n"
    "  [\"1 MB\", \"3 GB/s\", \"2 GB/s\"],\n"
    "]\n";

CollectiveFigures row(Collective collective, platform::Scope group, double slower) {
  return {collective, group, {{4096, 1e-4 * slower, 0, 0, 3}, {1 << 20, 2e-3 * slower, 0, 0, 3}}};
}

RankFigures figures_of(double slower) {
  RankFigures figures;
  figures.mesh = {2, 2};
  figures.rows = {row(Collective::all_gather, {2, 1}, slower),
                  row(Collective::all_gather, {2, 2}, 2 * slower),
                  row(Collective::broadcast, {1, 2}, slower)};
  return figures;
}

platform::Platform parsed(const std::string& text) {
  auto platform = platform::parse_platform(text, "mine.toml");
  INFO((platform.ok() ? std::string() : platform.error().message()));
  REQUIRE(platform.ok());
  return std::move(*platform);
}

std::string added(const std::string& text, const RankFigures& figures) {
  const platform::Platform before = parsed(text);
  const platform::Cluster* known = before.cluster ? &*before.cluster : nullptr;
  auto with = with_cluster(text, "mine.toml", measured_cluster(figures, known), "Measured.");
  INFO((with.ok() ? std::string() : with.error().message()));
  REQUIRE(with.ok());
  return std::move(*with);
}

TEST_CASE("links are those of the measured gathers, and curves the measured times") {
  const platform::Cluster cluster = measured_cluster(figures_of(1), nullptr);
  CHECK(cluster.within.bytes_per_s == Approx((1 << 20) / 2 / 2e-3));
  CHECK(cluster.within.latency_ns == 100'000);
  CHECK(cluster.between.bytes_per_s == Approx((1 << 20) / 4 * 3 / 4e-3));
  CHECK(cluster.between.latency_ns == 200'000 / 3);
  CHECK(cluster.nodes_a_leaf == 2);
  CHECK(cluster.find(Collective::broadcast, {1, 2})->points[1].bytes_per_s ==
        Approx((1 << 20) / 2e-3));
}

TEST_CASE("a larger tensor never counts as shorter") {
  RankFigures figures = figures_of(1);
  figures.rows[0].times.push_back({4 << 20, 1e-3, 0, 0, 3});
  const auto points = measured_cluster(figures, nullptr).collectives[0].points;
  CHECK(points[2].bytes_per_s == Approx((4 << 20) / 2e-3));
}

TEST_CASE("a file gets its cluster, keeps all else, and gets another in its place") {
  const std::string once = added(kMachine, figures_of(1));
  CHECK(once.starts_with(kMachine));
  CHECK(parsed(once).cluster->find(Collective::all_gather, {2, 2}) != nullptr);
  // What follows the cluster stays, too, and so does what nobody measured.
  const std::string edited =
      once +
      "# of all\n[[link]]  # below\nname = \"host\"\nread = \"8 GB/s\"\nwrite = \"8 GB/s\"\n" +
      "duplex = \"full\"\n";
  std::string known = edited;
  known.insert(known.find("ranks = 2"), "memory = \"7 GB\"\nstep = \"3 ms\"\n");
  const std::string twice = added(known, figures_of(10));
  CHECK(twice.find("# below") != std::string::npos);
  CHECK(twice.find("# of all\n[[link]]") != std::string::npos);
  CHECK(twice.find("# Measured.") == twice.rfind("# Measured."));
  CHECK(twice.find("# Mine.") == 0);
  const platform::Platform again = parsed(twice);
  CHECK(again.cluster->memory_bytes == 7'000'000'000);
  CHECK(again.cluster->step_ns == 3'000'000);
  CHECK(again.cluster->within.latency_ns == 1'000'000);
  CHECK(again.links.size() == parsed(edited).links.size());
  CHECK(added(twice, figures_of(10)) == twice);
}

TEST_CASE("tables that cannot be told apart are refused, and so is what is no platform") {
  const platform::Cluster cluster = measured_cluster(figures_of(1), nullptr);
  // An inline table of the same name has no header that could be found.
  const std::string inlined =
      "cluster = { ranks = 2, nodes = 1, within = { bandwidth = \"1 GB/s\" } }\n" + kMachine;
  const auto refused = with_cluster(inlined, "mine.toml", cluster, "Measured.");
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("take them out") != std::string::npos);
  CHECK(!with_cluster("name = 1", "mine.toml", cluster, "").ok());
}

}  // namespace
}  // namespace sluice::calibrate
