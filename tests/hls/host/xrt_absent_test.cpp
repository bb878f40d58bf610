// A build without XRT says what is missing, and what to install.

#include <catch2/catch.hpp>

#include "hls/host/xrt_devices.h"

using namespace sluice;
using namespace sluice::hls_host;
using Catch::Matchers::Contains;

TEST_CASE("without XRT no device is opened, and what to install is said") {
  const auto devices = open_xrt_devices({.xclbin = "any.xclbin"});
  REQUIRE_FALSE(devices.ok());
  CHECK(devices.error().code() == ErrorCode::unsupported);
  CHECK_THAT(devices.error().message(),
             Contains("backend=xrt") && Contains("libxrt-dev") && Contains("backend=emulated"));
}

TEST_CASE("without XRT the doctor says so") {
  const std::vector<XrtFinding> findings = examine_xrt(".", "");
  REQUIRE(findings.size() == 1);
  CHECK_FALSE(findings[0].is_good);
  CHECK_THAT(findings[0].text, Contains("without XRT"));
}
