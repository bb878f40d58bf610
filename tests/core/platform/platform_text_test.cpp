// A platform written as a file and read again is the same platform.

#include "core/platform/platform_text.h"

#include <catch2/catch.hpp>

namespace sluice::platform {
namespace {

void check_same(const Link& a, const Link& b) {
  CHECK(a.name == b.name);
  CHECK(a.read_bytes_per_s == Approx(b.read_bytes_per_s).epsilon(1e-5));
  CHECK(a.write_bytes_per_s == Approx(b.write_bytes_per_s).epsilon(1e-5));
  CHECK(a.latency_ns == b.latency_ns);
  CHECK(a.duplex == b.duplex);
  CHECK(a.sharing == b.sharing);
  CHECK(a.processor_bytes_per_s == Approx(b.processor_bytes_per_s).epsilon(1e-5));
  for (const auto burst : {&Link::read_burst, &Link::write_burst}) {
    CHECK((a.*burst).size_bytes == (b.*burst).size_bytes);
    CHECK((a.*burst).bytes_per_s == Approx((b.*burst).bytes_per_s).epsilon(1e-5));
  }
  REQUIRE(a.chunk_curve.size() == b.chunk_curve.size());
  for (std::size_t i = 0; i < a.chunk_curve.size(); ++i) {
    CHECK(a.chunk_curve[i].chunk_bytes == b.chunk_curve[i].chunk_bytes);
    CHECK(a.chunk_curve[i].write_bytes_per_s ==
          Approx(b.chunk_curve[i].write_bytes_per_s).epsilon(1e-5));
  }
}

void check_same(const Engine& a, const Engine& b) {
  CHECK(a.name == b.name);
  CHECK(a.launch_ns == b.launch_ns);
  CHECK(a.compute_units == b.compute_units);
  CHECK(a.wake_ns == b.wake_ns);
  CHECK(a.wake_takes_ns == b.wake_takes_ns);
  CHECK(a.processor == b.processor);
  REQUIRE(a.rate.size() == b.rate.size());
  for (const auto& [kernel, per_second] : a.rate) {
    CHECK(per_second == Approx(b.rate.at(kernel)).epsilon(1e-5));
  }
}

void check_same(const Device& a, const Device& b) {
  CHECK(a.name == b.name);
  CHECK(a.host_route == b.host_route);
  CHECK(a.memory_route == b.memory_route);
  CHECK(a.internal_route == b.internal_route);
  CHECK(a.engine == b.engine);
  CHECK(a.memory_bytes == b.memory_bytes);
  CHECK(a.capacity_bytes == b.capacity_bytes);
  CHECK(a.endurance_bytes == b.endurance_bytes);
  CHECK(a.price_usd == b.price_usd);
}

template <typename Thing>
void check_all_same(const std::vector<Thing>& a, const std::vector<Thing>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) check_same(a[i], b[i]);
}

constexpr const char* kPlainDrives = R"(
name = "a \"quoted\" name"
[[link]]
name = "root"
read = "12 GB/s"
write = "11.5 GB/s"
duplex = "full"
[[link]]
name = "switch"
read = "7 GB/s"
write = "7 GB/s"
duplex = "half"
[host]
memory = "64 GiB"
wake = "25 ms"
wake_takes = "45 ms"
adamw = "1.234567 Gelem/s"
stage = "3 Gelem/s"
[compute]
matmul = "55 TFLOP/s"
elementwise = "2 Gelem/s"
processor = "host"
[[device]]
name = "nvme"
count = 2
via = ["root", "switch"]
endurance = "1.2 TB"
drive = { read = "7 GB/s", write = "987654321 B/s", duplex = "half", sharing = "in_order", processor_bandwidth = "48 GB/s", write_burst = "20 GB", write_burst_rate = "5 GB/s" }
)";

TEST_CASE("what is written of a platform is read as the same platform") {
  const std::string samples = SLUICE_SOURCE_DIR "/sample_models/platforms/";
  const std::vector<Result<Platform>> platforms = {
      load_platform(samples + "smartssd-a5000.toml"),
      load_platform(samples + "smartssd-a100.toml"),
      load_platform(samples + "smartssd-a4000-switch.toml"),
      load_platform(samples + "laptop.toml"),
      load_platform(samples + "raid-4gpu.toml"),
      load_platform(samples + "ssd12-4090.toml"),
      parse_platform(kPlainDrives, "plain.toml")};
  for (const Result<Platform>& platform : platforms) {
    REQUIRE(platform.ok());
    const auto again = parse_platform(platform_text(*platform), "again.toml");
    REQUIRE(again.ok());
    CHECK(again->name == platform->name);
    CHECK(again->host_memory_bytes == platform->host_memory_bytes);
    CHECK(again->price_usd() == platform->price_usd());
    CHECK(again->host_engine == platform->host_engine);
    CHECK(again->compute_engine == platform->compute_engine);
    CHECK(again->accelerator_routes == platform->accelerator_routes);
    check_all_same(again->links, platform->links);
    check_all_same(again->engines, platform->engines);
    check_all_same(again->devices, platform->devices);
  }
}

}  // namespace
}  // namespace sluice::platform
