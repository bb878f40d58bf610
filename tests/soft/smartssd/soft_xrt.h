#pragma once
// What the tests of the software device share: XRT finds it (XILINX_XRT), each test case has
// devices of its own, and a machine with another XRT skips.
//
// Thread contract: a test's main thread.

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "soft/smartssd/xrt_abi_check.h"
#include "tests/sanitizer.h"
#include "tests/skip.h"
#include "xrt/xrt_bo.h"
#include "xrt/xrt_device.h"
#include "xrt/xrt_kernel.h"

namespace sluice::soft_smartssd {

extern const char* const kTestXclbin;  // the path of test_kernels.cpp as an xclbin

// Says that it skips where XRT is another one, and under tsan, which cannot see what XRT's own code
// orders; model_test.cpp is what tsan looks at.
inline bool skips_for_xrt() {
  const std::string problem =
      kIsThreadSanitized ? "XRT's libraries are not built for tsan" : abi_problem();
  if (!problem.empty()) skip_test(problem);
  return !problem.empty();
}

// Devices with these settings, the test kernels loaded.
class SoftXrt {
 public:
  explicit SoftXrt(const std::string& settings = "") {
    setenv("SLUICE_SOFT_XRT", settings.c_str(), 1);
  }
  ~SoftXrt() { unsetenv("SLUICE_SOFT_XRT"); }

  struct Loaded {
    xrt::device device;
    xrt::uuid xclbin;
    xrt::kernel kernel(const std::string& name) const { return {device, xclbin, name}; }
  };
  Loaded open(unsigned index = 0) const {
    xrt::device device(index);
    const xrt::uuid xclbin = device.load_xclbin(std::string(kTestXclbin));
    return {std::move(device), xclbin};
  }
};

inline constexpr std::chrono::milliseconds kLong{20000};

// A callback may come after wait() has returned.
template <typename Condition>
bool eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace sluice::soft_smartssd
