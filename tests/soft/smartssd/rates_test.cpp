// What a platform file says of a device is how long its kernels and syncs take at least.

#include "soft/smartssd/rates.h"

#include <xrt_mem.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "soft/smartssd/soft_device.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::soft_smartssd;
using platform::Direction;

namespace {

constexpr const char* kPlatform = R"(
name = "two cards and a drive"
[[link]]
name = "host"
read = "2 MB/s"
write = "1 MB/s"
duplex = "full"
latency = "5 us"
[host]
adamw = "1 Gelem/s"
stage = "1 Gelem/s"
[compute]
matmul = "1 TFLOP/s"
[[device]]
name = "csd"
count = 2
via = ["host"]
memory = "4 GiB"
[device.drive]
read = "2 GB/s"
write = "2 GB/s"
duplex = "half"
[device.internal]
read = "2 GB/s"
write = "2 GB/s"
duplex = "half"
[device.engine]
adamw = "0.5 Gelem/s"
decompress = "0.25 Gelem/s"
launch = "20 us"
[[device]]
name = "ssd"
via = ["host"]
[device.drive]
read = "2 GB/s"
write = "2 GB/s"
duplex = "half"
)";

std::string written_platform(const TestFolder& folder) {
  const std::string path = folder.file("platform.toml");
  std::ofstream(path) << kPlatform;
  return path;
}

Rates rates_of(const std::string& settings) {
  const auto parsed = parse_settings(settings);
  REQUIRE(parsed.ok());
  auto rates = Rates::of(*parsed, 1);
  INFO((rates.ok() ? "" : rates.error().message()));
  REQUIRE(rates.ok());
  return std::move(*rates);
}

}  // namespace

TEST_CASE("kernels take what the engine of the platform takes") {
  const TestFolder folder;
  const Rates rates = rates_of("platform=" + written_platform(folder));
  CHECK(rates.kernel_ns({"update_adamw", 1'000'000}) == 20'000 + 2'000'000);
  CHECK(rates.kernel_ns({"update_adamw_split", 1'000'000}) == 20'000 + 2'000'000);
  CHECK(rates.kernel_ns({"update_adamw", 1'000'000, true}) == 20'000 + 4'000'000);
  CHECK(rates.kernel_ns({"update_sgd", 1'000'000}) == 0);  // of which the file says nothing
  CHECK(rates.kernel_ns({"checksum", 1'000'000}) == 0);
}

TEST_CASE("syncs take what the way to the device takes") {
  const TestFolder folder;
  const Rates rates = rates_of("platform=" + written_platform(folder));
  CHECK(rates.sync_ns(Direction::write, 1'000'000) >= 1'000'005'000);
  CHECK(rates.sync_ns(Direction::read, 1'000'000) >= 500'005'000);
  CHECK(rates.sync_ns(Direction::read, 1'000'000) < 510'000'000);
}

TEST_CASE("a setting stands above the platform, and neither is as fast as it runs") {
  const TestFolder folder;
  const Rates rates =
      rates_of("kernel_elements_per_s=1e6;sync_mib_per_s=1;platform=" + written_platform(folder));
  CHECK(rates.kernel_ns({"vadd", 1'000}) == 1'000'000);
  CHECK(rates.sync_ns(Direction::write, 1 << 20) == 1'000'000'000);
  const Rates none = rates_of("");
  CHECK(none.kernel_ns({"update_adamw", 1'000'000}) == 0);
  CHECK(none.sync_ns(Direction::read, 1'000'000) == 0);
}

TEST_CASE("a platform that has no such card is refused") {
  const TestFolder folder;
  const auto settings = parse_settings("devices=4;platform=" + written_platform(folder));
  REQUIRE(settings.ok());
  const auto drive = Rates::of(*settings, 2);
  REQUIRE_FALSE(drive.ok());
  CHECK_THAT(drive.error().message(), Catch::Contains("ssd") && Catch::Contains("plain drive"));
  const auto absent = Rates::of(*settings, 3);
  REQUIRE_FALSE(absent.ok());
  CHECK_THAT(absent.error().message(), Catch::Contains("has 3 devices, not 4"));
  CHECK_FALSE(Rates::of(*parse_settings("platform=/nowhere.toml"), 0).ok());
}

TEST_CASE("a device keeps to its rates") {
  const TestFolder folder;
  setenv(kSettingsVariable, ("platform=" + written_platform(folder)).c_str(), 1);
  auto device = SoftDevice::open(0);
  unsetenv(kSettingsVariable);
  REQUIRE(device.ok());
  constexpr std::uint64_t kBytes = 200'000;
  const auto buffer = (*device)->allocate(kBytes, XCL_BO_FLAGS_NONE, nullptr);
  REQUIRE(buffer.ok());
  const auto begin = std::chrono::steady_clock::now();
  CHECK((*device)->sync(*buffer, SyncTo::device, kBytes, 0).ok());
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(200));
}
