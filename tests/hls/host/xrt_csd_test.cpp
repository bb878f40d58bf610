// Devices of XRT against the contract of core/csd's seam, on the software SmartSSD of this build:
// XRT's own library, with a card behind it that computes what the kernels say.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "hls/host/xrt_devices.h"
#include "tests/core/csd/device_conformance.h"
#include "tests/core/train/small_run.h"
#include "tests/sanitizer.h"
#include "tests/skip.h"

using namespace sluice;
using namespace sluice::csd;
using Catch::Matchers::Contains;

namespace {

// Where the build has put it; empty: it has none. XRT looks at XILINX_XRT when it is first called.
const std::string& soft_xrt() {
  static const std::string folder = [] {
    if (kIsThreadSanitized) return std::string();  // tsan cannot see what XRT's own code orders
    std::error_code error;
    const std::filesystem::path found =
        std::filesystem::read_symlink("/proc/self/exe", error).parent_path().parent_path() /
        "lib/soft_xrt";
    if (!std::filesystem::exists(found / "sluice.xclbin", error)) return std::string();
    setenv("XILINX_XRT", found.c_str(), 1);
    // Little memory: how much is free is found by trying, and each try poisons what it gets.
    setenv("SLUICE_SOFT_XRT", "devices=2;memory_mib=256", 1);
    return found.string();
  }();
  return folder;
}

std::unique_ptr<DeviceFactory> open_soft_cards() {
  if (soft_xrt().empty()) {
    skip_test("there is no software SmartSSD in this build, or tsan, which XRT is not built for");
    return nullptr;
  }
  auto devices = hls_host::open_xrt_devices({.xclbin = soft_xrt() + "/sluice.xclbin"});
  INFO((devices.ok() ? "" : devices.error().message()));
  REQUIRE(devices.ok());
  return std::move(*devices);
}

}  // namespace

TEST_CASE("a device of XRT is a CsdDevice") {
  const auto devices = open_soft_cards();
  if (devices == nullptr) return;
  check_device(*devices);
}

TEST_CASE("what a device of XRT is asked for too much of is refused by name") {
  const auto devices = open_soft_cards();
  if (devices == nullptr) return;
  DeviceBench bench(*devices);
  auto huge = devices->make({*bench.runtime, bench.platform, DeviceId{0}, {1 << 20}, 1LL << 50});
  REQUIRE(huge.ok());
  const auto refused = (*huge)->memory().allocate(1LL << 45, Placement::state);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  CHECK_THAT(refused.error().message(), Contains("the largest that fits is"));
  CHECK((*huge)->memory().allocate(1 << 20, Placement::state).ok());
}

TEST_CASE("files that a card does not reach by itself are refused") {
  const auto devices = open_soft_cards();
  if (devices == nullptr) return;
  DeviceBench bench(*devices);  // whose file is opened with caching=buffered
  const Status buffered = bench.device->check_files();
  REQUIRE_FALSE(buffered.ok());
  CHECK_THAT(buffered.error().message(), Contains("caching=direct"));
}

TEST_CASE("an xclbin that is not there, or is none, is said") {
  if (open_soft_cards() == nullptr) return;
  const auto absent = hls_host::open_xrt_devices({.xclbin = "/nowhere/kernels.xclbin"});
  REQUIRE_FALSE(absent.ok());
  CHECK(absent.error().code() == ErrorCode::not_found);
  const auto foreign = hls_host::open_xrt_devices({.xclbin = "/proc/self/exe"});
  REQUIRE_FALSE(foreign.ok());
  CHECK(foreign.error().code() == ErrorCode::corrupt);
}

TEST_CASE("whole runs on devices of XRT give the bits of emulated ones") {
  const auto devices = open_soft_cards();
  if (devices == nullptr) return;
  const auto pipeline = GENERATE("serial", "handover", "nbuffer");
  const auto way =
      GENERATE(std::vector<std::string>{"wire=fp32", "optimizer=sgd"},
               std::vector<std::string>{"wire=native", "optimizer=adagrad"},
               std::vector<std::string>{"density=0.05", "error_feedback=true", "buffers=4"});
  std::vector<std::string> settings = way;
  settings.insert(settings.end(),
                  {std::string("pipeline=") + pipeline, "method=csd", "caching=direct", "steps=3"});
  const SmallRun plain_files;
  const auto plain = train_small(plain_files, settings);
  REQUIRE(plain.ok());
  const SmallRun files;
  const auto trained =
      train_small(files, settings, session::StartFrom::new_state, {}, {}, devices.get());
  INFO((trained.ok() ? "" : trained.error().message()));
  REQUIRE(trained.ok());
  CHECK(trained->digest == plain->digest);
  CHECK(trained->losses == plain->losses);
  REQUIRE(trained->link_bytes.size() == plain->link_bytes.size());
  for (std::size_t i = 0; i < plain->link_bytes.size(); ++i) {
    CHECK(trained->link_bytes[i].size_bytes == plain->link_bytes[i].size_bytes);
  }
}
