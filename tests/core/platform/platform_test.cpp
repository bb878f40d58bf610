#include "core/platform/platform.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <sstream>

#include "core/platform/flow_network.h"

namespace sluice::platform {
namespace {

constexpr const char* kUneven = R"(
name = "uneven"

[[link]]
name = "host"
read = "8 GB/s"
write = "7 GB/s"
duplex = "full"
latency = "5 us"

[[link]]
name = "switch"
read = "16 GiB/s"
write = "16 GiB/s"
duplex = "half"

[host]
memory = "64 GB"
adamw = "1.5 Gelem/s"
stage = "3 Gelem/s"

[compute]
matmul = "420 GFLOP/s"
launch = "10 us"

[[device]]
name = "csd"
count = 2
via = ["host", "switch"]
memory = "4 GB"
capacity = "4 TB"
drive = { read = "3 GB/s", write = "1.65 GB/s", duplex = "half", latency = "80 us", chunk_curve = [["4 KiB", "60 MB/s", "250 MB/s"], ["1 MiB", "2 GB/s", "1.5 GB/s"]] }
internal = { read = "4 GB/s", write = "3.9 GB/s", duplex = "full" }
engine = { adamw = "0.51 Gelem/s", decompress = "0.45 Gelem/s", launch = "20 us" }

[[device]]
name = "nvme"
via = ["host"]
endurance = "600 TB"
drive = { read = "7 GB/s", write = "5 GB/s", duplex = "half" }
)";

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Platform parsed(const std::string& toml) {
  auto platform = parse_platform(toml, "test.toml");
  INFO((platform.ok() ? "" : platform.error().message()));
  REQUIRE(platform.ok());
  return *std::move(platform);
}

const Link& at(const Platform& platform, LinkId id) {
  return platform.links.at(static_cast<std::size_t>(index_of(id)));
}
const Engine& at(const Platform& platform, EngineId id) {
  return platform.engines.at(static_cast<std::size_t>(index_of(id)));
}

std::vector<std::string> names(const Platform& platform, const std::vector<LinkId>& route) {
  std::vector<std::string> result;
  for (const LinkId id : route) result.push_back(at(platform, id).name);
  return result;
}

using Names = std::vector<std::string>;

TEST_CASE("a platform file gives links, engines and devices of every group") {
  const Platform platform = parsed(kUneven);
  CHECK(platform.name == "uneven");
  CHECK(platform.source == "test.toml");
  CHECK(platform.host_memory_bytes == 64'000'000'000);

  Names links;
  for (const Link& link : platform.links) links.push_back(link.name);
  CHECK(links == Names{"host", "switch", "csd0.drive", "csd0.internal", "csd1.drive",
                       "csd1.internal", "nvme.drive"});
  Names engines;
  for (const Engine& engine : platform.engines) engines.push_back(engine.name);
  CHECK(engines == Names{"host", "compute", "csd0.engine", "csd1.engine"});

  CHECK(platform.links[0].write_bytes_per_s == 7e9);
  CHECK(platform.links[0].latency_ns == 5000);
  CHECK(platform.links[0].duplex == Duplex::full);
  CHECK(platform.links[1].read_bytes_per_s == 16.0 * (1 << 30));
  CHECK(platform.links[1].duplex == Duplex::half);
  CHECK(platform.links[1].latency_ns == 0);
}

TEST_CASE("a device with an engine has three routes, a plain drive has one") {
  const Platform platform = parsed(kUneven);
  REQUIRE(platform.devices.size() == 3);
  const Device& csd = platform.devices[1];
  CHECK(csd.name == "csd1");
  CHECK(names(platform, csd.host_route) == Names{"host", "switch", "csd1.drive"});
  CHECK(names(platform, csd.memory_route) == Names{"host", "switch"});
  CHECK(names(platform, csd.internal_route) == Names{"csd1.drive", "csd1.internal"});
  CHECK(csd.memory_bytes == 4'000'000'000);
  CHECK(csd.capacity_bytes == 4'000'000'000'000);
  CHECK(csd.endurance_bytes == 0);
  CHECK(at(platform, csd.engine).name == "csd1.engine");

  const Device& nvme = platform.devices[2];
  CHECK(nvme.name == "nvme");
  CHECK(names(platform, nvme.host_route) == Names{"host", "nvme.drive"});
  CHECK(nvme.memory_route.empty());
  CHECK(nvme.internal_route.empty());
  CHECK(nvme.engine == EngineId{-1});
  CHECK(nvme.memory_bytes == 0);
  CHECK(nvme.capacity_bytes == 0);
  CHECK(nvme.endurance_bytes == 600'000'000'000'000);
}

TEST_CASE("rates, launch times and chunk curves are read with their units") {
  const Platform platform = parsed(kUneven);
  const Engine& csd = at(platform, platform.devices[0].engine);
  CHECK(csd.rate == std::map<std::string, double>{{"adamw", 0.51e9}, {"decompress", 0.45e9}});
  CHECK(csd.launch_ns == 20'000);
  CHECK(at(platform, platform.host_engine).rate.at("stage") == 3e9);
  CHECK(at(platform, platform.compute_engine).rate.at("matmul") == 420e9);
  CHECK(at(platform, platform.compute_engine).launch_ns == 10'000);

  const Link& drive = at(platform, platform.devices[0].host_route.back());
  REQUIRE(drive.chunk_curve.size() == 2);
  CHECK(drive.chunk_curve[0].chunk_bytes == 4096);
  CHECK(drive.chunk_curve[0].write_bytes_per_s == 250e6);
  CHECK(drive.chunk_curve[1].read_bytes_per_s == 2e9);
}

TEST_CASE("fewer devices are the first ones, without the links and engines of the others") {
  const Platform platform = parsed(kUneven);
  const auto one = with_devices(platform, 1);
  REQUIRE(one.ok());
  REQUIRE(one->devices.size() == 1);
  CHECK(one->links.size() == 4);  // "host" and "switch" stay
  CHECK(one->engines.size() == 3);
  CHECK(names(*one, one->devices[0].internal_route) == Names{"csd0.drive", "csd0.internal"});
  CHECK(at(*one, one->devices[0].engine).name == "csd0.engine");
  CHECK(at(*one, one->host_engine).name == "host");
  CHECK(at(*one, one->compute_engine).name == "compute");

  const auto all = with_devices(platform, 3);
  REQUIRE(all.ok());
  CHECK(all->links.size() == platform.links.size());
  CHECK(names(*all, all->devices[2].host_route) == Names{"host", "nvme.drive"});
}

TEST_CASE("a link that only dropped devices used goes, and the numbers after it close up") {
  std::string toml = kUneven;
  const std::string second_link = "[[link]]\nname = \"switch\"";
  toml.replace(toml.find(second_link), second_link.size(),
               "[[link]]\nname = \"slow\"\nread = \"1 GB/s\"\nwrite = \"1 GB/s\"\nduplex = "
               "\"half\"\n\n" +
                   second_link);
  toml.replace(toml.rfind("[\"host\"]"), 8, "[\"slow\"]");
  const auto two = with_devices(parsed(toml), 2);
  REQUIRE(two.ok());
  CHECK(names(*two, two->devices[1].host_route) == Names{"host", "switch", "csd1.drive"});
  for (const Link& link : two->links) CHECK(link.name != "slow");
}

TEST_CASE("accelerators: a link each behind the shared ones, and one engine as fast as all") {
  std::string toml = kUneven;
  const auto at_matmul = toml.find("matmul = ");
  toml.insert(at_matmul,
              "count = 3\nvia = [\"switch\"]\nlink = { read = \"20 GB/s\", write = \"25 GB/s\", "
              "duplex = \"full\" }\nprice = \"1000 USD\"\n");
  const Platform platform = parsed(toml);
  const Platform plain = parsed(kUneven);
  CHECK(plain.accelerator_routes.empty());
  REQUIRE(platform.accelerator_routes.size() == 3);
  CHECK(names(platform, platform.accelerator_routes[1]) == Names{"switch", "accelerator1.link"});
  CHECK(platform.links.size() == plain.links.size() + 3);
  const auto matmul = [](const Platform& p) { return at(p, p.compute_engine).rate.at("matmul"); };
  CHECK(matmul(platform) == 3 * matmul(plain));
  CHECK(platform.compute_price_usd == 3000);

  const auto two = with_accelerators(platform, 2);
  REQUIRE(two.ok());
  CHECK(two->links.size() == platform.links.size() - 1);
  CHECK(matmul(*two) == Approx(2 * matmul(plain)));
  CHECK(two->compute_price_usd == Approx(2000));
  const auto fewer = with_devices(*two, 1);
  REQUIRE(fewer.ok());
  CHECK(names(*fewer, fewer->accelerator_routes[1]) == Names{"switch", "accelerator1.link"});
  CHECK(names(*fewer, fewer->devices[0].internal_route) == Names{"csd0.drive", "csd0.internal"});
  const auto none = with_accelerators(platform, 0);
  REQUIRE(none.ok());
  CHECK(none->accelerator_routes.empty());
  CHECK(none->links.size() == plain.links.size());
  CHECK(matmul(*none) == Approx(matmul(plain)));
  CHECK(with_accelerators(platform, 4).error().message() ==
        "4 accelerators were asked for; platform 'uneven' (test.toml) has 3");
}

TEST_CASE("more devices than there are is an error that says how many there are") {
  for (const std::int32_t count : {4, 0, -1}) {
    const auto result = with_devices(parsed(kUneven), count);
    REQUIRE(!result.ok());
    CHECK(result.error().code() == ErrorCode::config);
    CHECK(result.error().message() ==
          fmt::format("{} devices were asked for; platform 'uneven' (test.toml) has 3: ask for 1 "
                      "to 3",
                      count));
  }
}

TEST_CASE("the sample platforms load and have ten drives with an engine") {
  for (const auto& [name, adamw_per_s] : std::map<std::string, double>{
           {"smartssd-a5000", 0.51e9},
           {"smartssd-a5000-estimated", 0.55e9},
           {"smartssd-a100", 0.51e9},
           {"smartssd-a4000-switch", 0.51e9},
           {"laptop", 0.51e9},
       }) {
    INFO(name);
    const auto platform =
        load_platform(SLUICE_SOURCE_DIR "/sample_models/platforms/" + name + ".toml");
    INFO((platform.ok() ? "" : platform.error().message()));
    REQUIRE(platform.ok());
    REQUIRE(platform->devices.size() == 10);
    for (const Device& device : platform->devices) {
      CHECK(device.memory_bytes == std::int64_t{4} << 30);
      CHECK(at(*platform, device.engine).rate.at("adamw") == adamw_per_s);
      CHECK(at(*platform, device.engine).rate.contains("decompress"));
    }
    CHECK(at(*platform, platform->host_engine).rate.contains("adamw"));
    CHECK(at(*platform, platform->host_engine).rate.contains("stage"));
  }
}

TEST_CASE("the sample SmartSSD reads, writes and decompresses at the rates fitted to it") {
  const auto platform =
      load_platform(SLUICE_SOURCE_DIR "/sample_models/platforms/smartssd-a5000.toml");
  REQUIRE(platform.ok());
  const Device& csd = platform->devices[0];
  const auto rate = [&](Direction direction) {
    FlowNetwork alone(platform->links);
    const FlowId flow = alone.start(
        {.route = csd.internal_route, .direction = direction, .size_bytes = 160'000'000}, 0);
    std::vector<FlowNetwork::Completion> none;
    alone.advance(1'000'000, none);
    return alone.rate_bytes_per_s(flow);
  };
  CHECK(rate(Direction::read) == 2.77e9);
  CHECK(rate(Direction::write) == Approx(1.62e9));
  const auto& rates = at(*platform, csd.engine).rate;
  CHECK(1 / (1 / rates.at("decompress") + 1 / rates.at("adamw")) == Approx(0.24e9).epsilon(0.01));
}

TEST_CASE("the example of the format's page loads") {
  const std::string page = slurp(SLUICE_SOURCE_DIR "/docs/platform_format.md");
  const std::size_t begin = page.find("```toml\n");
  REQUIRE(begin != std::string::npos);
  const std::size_t end = page.find("```", begin + 8);
  const Platform platform = parsed(page.substr(begin + 8, end - begin - 8));
  CHECK(platform.devices.size() == 5);
}

TEST_CASE("a platform file that cannot be read says why") {
  const auto absent = load_platform("/no/such/platform.toml");
  REQUIRE(!absent.ok());
  CHECK(absent.error().code() == ErrorCode::not_found);
  CHECK(absent.error().message() ==
        "/no/such/platform.toml: cannot read the platform file: No such file or directory");
  const auto folder = load_platform("/");
  REQUIRE(!folder.ok());
  CHECK(folder.error().code() == ErrorCode::not_found);
}

}  // namespace
}  // namespace sluice::platform
