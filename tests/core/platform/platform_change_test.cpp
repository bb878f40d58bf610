// Scales and compute units: what each multiplies and what it leaves alone, in a file and set on the
// command line.

#include "core/platform/platform_change.h"

#include <catch2/catch.hpp>

#include "core/platform/platform_text.h"

namespace sluice::platform {
namespace {

constexpr const char* kMachine = R"(
name = "machine"
[[link]]
name = "host"
read = "8 GB/s"
write = "7 GB/s"
duplex = "full"
latency = "5 us"
[host]
adamw = "1 Gelem/s"
launch = "3 us"
[compute]
matmul = "55 TFLOP/s"
link = { read = "25 GB/s", write = "25 GB/s", duplex = "full" }
[[device]]
name = "csd"
count = 2
via = ["host"]
memory = "4 GB"
drive = { read = "3 GB/s", write = "2 GB/s", duplex = "half", latency = "80 us", processor_bandwidth = "20 GB/s", write_burst = "1 GB", write_burst_rate = "4 GB/s", chunk_curve = [["4 KiB", "1 GB/s", "0.5 GB/s"]] }
internal = { read = "4 GB/s", write = "3 GB/s", duplex = "full" }
engine = { adamw = "0.5 Gelem/s", decompress = "0.4 Gelem/s", launch = "20 us" }
[[device]]
name = "plain"
via = ["host"]
drive = { read = "6 GB/s", write = "5 GB/s", duplex = "half" }
)";

Platform changed_platform(const std::string& toml) {
  auto platform = parse_platform(toml, "p.toml");
  INFO((platform.ok() ? std::string() : platform.error().message()));
  REQUIRE(platform.ok());
  return std::move(*platform);
}

Platform platform_with_line(const std::string& behind, const std::string& line) {
  std::string toml = kMachine;
  return changed_platform(toml.insert(toml.find(behind) + behind.size(), "\n" + line));
}
Platform with_top(const std::string& line) {
  return platform_with_line("name = \"machine\"", line);
}

Platform set(const std::vector<std::string>& settings) {
  const auto change = parse_platform_change(settings);
  REQUIRE(change.ok());
  auto changed = with_change(changed_platform(kMachine), *change);
  REQUIRE(changed.ok());
  return std::move(*changed);
}

std::string message_of_change(const std::vector<std::string>& settings) {
  const auto change = parse_platform_change(settings);
  if (!change.ok()) return change.error().message();
  const auto changed = with_change(changed_platform(kMachine), *change);
  return changed.ok() ? "" : changed.error().message();
}

const Link& link_of(const Platform& platform, const std::string& name) {
  return *std::ranges::find(platform.links, name, &Link::name);
}
const Engine& engine_of(const Platform& platform, const std::string& name) {
  return *std::ranges::find(platform.engines, name, &Engine::name);
}

// By name: how much faster each link reads and each engine updates than in the machine itself.
std::map<std::string, double> factors(const Platform& platform) {
  const Platform machine = changed_platform(kMachine);
  std::map<std::string, double> factors;
  for (std::size_t i = 0; i < machine.links.size(); ++i) {
    const double factor = platform.links[i].read_bytes_per_s / machine.links[i].read_bytes_per_s;
    if (factor != 1) factors[machine.links[i].name] = factor;
  }
  for (std::size_t i = 0; i < machine.engines.size(); ++i) {
    for (const auto& [kernel, rate] : machine.engines[i].rate) {
      const double factor = platform.engines[i].rate.at(kernel) / rate;
      if (factor != 1) factors[machine.engines[i].name + " " + kernel] = factor;
    }
  }
  return factors;
}

using Factors = std::map<std::string, double>;

TEST_CASE("each scale multiplies the rates of its part, in a file and on the command line") {
  const std::vector<std::pair<std::string, Factors>> cases = {
      {"engine_scale",
       {{"csd0.engine adamw", 4},
        {"csd0.engine decompress", 4},
        {"csd1.engine adamw", 4},
        {"csd1.engine decompress", 4}}},
      {"media_scale", {{"csd0.drive", 4}, {"csd1.drive", 4}, {"plain.drive", 4}}},
      {"internal_scale", {{"csd0.internal", 4}, {"csd1.internal", 4}}},
      {"link_scale", {{"host", 4}}}};
  for (const auto& [key, wanted] : cases) {
    INFO(key);
    CHECK(factors(with_top(key + " = 4")) == wanted);
    CHECK(factors(set({key + "=4"})) == wanted);
  }
}

TEST_CASE("a scale of a group or a link is of that one, and those of the whole file multiply it") {
  CHECK(factors(platform_with_line("name = \"plain\"", "media_scale = 2")) ==
        Factors{{"plain.drive", 2}});
  CHECK(factors(platform_with_line("name = \"host\"", "link_scale = 0.5")) ==
        Factors{{"host", 0.5}});
  CHECK(factors(platform_with_line("name = \"csd\"", "engine_scale = 2\ninternal_scale = 4")) ==
        Factors{{"csd0.engine adamw", 2},
                {"csd0.engine decompress", 2},
                {"csd0.internal", 4},
                {"csd1.engine adamw", 2},
                {"csd1.engine decompress", 2},
                {"csd1.internal", 4}});
  std::string both = kMachine;
  both.insert(both.find("name = \"plain\""), "media_scale = 2\n");
  CHECK(factors(changed_platform("media_scale = 4\n" + both)) ==
        Factors{{"csd0.drive", 4}, {"csd1.drive", 4}, {"plain.drive", 8}});
}

TEST_CASE("a scale takes chunk curve and burst along, and leaves times and sizes as they are") {
  const Platform machine = changed_platform(kMachine);
  const Platform faster = set({"media_scale=2", "engine_scale=2"});
  const Link& slow = link_of(machine, "csd1.drive");
  const Link& fast = link_of(faster, "csd1.drive");
  CHECK(fast.write_bytes_per_s == 2 * slow.write_bytes_per_s);
  CHECK(fast.chunk_curve[0].read_bytes_per_s == 2 * slow.chunk_curve[0].read_bytes_per_s);
  CHECK(fast.chunk_curve[0].write_bytes_per_s == 2 * slow.chunk_curve[0].write_bytes_per_s);
  CHECK(fast.chunk_curve[0].chunk_bytes == slow.chunk_curve[0].chunk_bytes);
  CHECK(fast.write_burst.bytes_per_s == 2 * slow.write_burst.bytes_per_s);
  CHECK(fast.write_burst.size_bytes == slow.write_burst.size_bytes);
  CHECK(fast.latency_ns == slow.latency_ns);
  CHECK(fast.processor_bytes_per_s == slow.processor_bytes_per_s);
  CHECK(engine_of(faster, "csd0.engine").launch_ns == engine_of(machine, "csd0.engine").launch_ns);
}

TEST_CASE("compute units are those of the devices' engines; one where nothing is said") {
  const Platform machine = changed_platform(kMachine);
  CHECK(std::ranges::all_of(machine.engines, [](const Engine& e) { return e.compute_units == 1; }));
  std::string toml = kMachine;
  const std::string launch = "launch = \"20 us\"";
  toml.insert(toml.find(launch), "compute_units = 3, ");
  for (const Platform& three : {changed_platform(toml), set({"compute_units=3"})}) {
    CHECK(engine_of(three, "csd0.engine").compute_units == 3);
    CHECK(engine_of(three, "csd1.engine").compute_units == 3);
    CHECK(engine_of(three, "host").compute_units == 1);
    CHECK(engine_of(three, "compute").compute_units == 1);
    const Platform again = changed_platform(platform_text(three));
    CHECK(engine_of(again, "csd1.engine").compute_units == 3);
  }
}

TEST_CASE("a changed platform's name says so, and its text has the changed rates") {
  const Platform changed = set({"engine_scale=100", "link_scale=0.5", "compute_units=2"});
  CHECK(changed.name == "machine, engine_scale=100, link_scale=0.5, compute_units=2");
  CHECK(factors(changed_platform(platform_text(changed))).at("csd0.engine adamw") == Approx(100));
  CHECK(set({}).name == "machine");
  CHECK(set({"media_scale=3", "media_scale=1"}).name == "machine");
}

TEST_CASE("what cannot be set is refused, with the key that was probably meant") {
  CHECK(message_of_change({"engin_scale=2"}) ==
        "engin_scale: there is no such key of a platform to set (did you mean 'engine_scale'?)");
  CHECK(message_of_change({"media_scale=fast"}) == "media_scale: 'fast' is not a number");
  CHECK(message_of_change({"media_scale"}) == "media_scale: '' is not a number");
  CHECK(message_of_change({"media_scale=0"}) == "media_scale: 0 is not in 1e-06 to 1e+06");
  CHECK(message_of_change({"media_scale=nan"}) == "media_scale: nan is not in 1e-06 to 1e+06");
  CHECK(message_of_change({"compute_units=0"}) == "compute_units: 0 is not in 1 to 64");
  CHECK(message_of_change({"compute_units=1.5"}) == "compute_units: '1.5' is not a number");
  CHECK(message_of_change({"engine_scale=1", "compute_units=2"}).empty());
}

TEST_CASE("a platform without engines has none to change") {
  const std::string text = kMachine;
  const std::size_t csd = text.find("[[device]]");
  const Platform plain =
      changed_platform(text.substr(0, csd) + text.substr(text.rfind("[[device]]")));
  for (const auto& [setting, message] :
       {std::pair{"engine_scale=2", "engine_scale: the platform has nothing of the kind"},
        std::pair{"compute_units=2", "compute_units: no device has an engine"}}) {
    const auto changed =
        with_change(plain, *parse_platform_change(std::vector<std::string>{setting}));
    REQUIRE_FALSE(changed.ok());
    CHECK(changed.error().message() == message);
  }
}

}  // namespace
}  // namespace sluice::platform
