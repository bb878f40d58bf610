#include "tests/soft/smartssd/soft_xrt.h"

namespace sluice::soft_smartssd {

namespace {

// A program's first use of XRT reads it; before main() is before that.
[[maybe_unused]] const bool kXilinxXrtIsSet = [] {
  setenv("XILINX_XRT", SLUICE_SOFT_XRT_FOLDER, 1);
  unsetenv("XCL_EMULATION_MODE");
  return true;
}();

}  // namespace

const char* const kTestXclbin = SLUICE_TEST_XCLBIN;

}  // namespace sluice::soft_smartssd
