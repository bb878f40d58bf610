// The software device re-declares a private interface of XRT 2.13: this says whether it is still
// so.

#include <fstream>
#include <iterator>

#include "tests/soft/smartssd/soft_xrt.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

TEST_CASE("the installed XRT has the version and the vtables that are re-declared") {
  if (skips_for_xrt()) return;
  CHECK(XRT_VERSION_CODE == XRT_VERSION(2, 13));
  CHECK(exported_bytes("_ZTVN8xrt_core6deviceE") == 0x248);
  CHECK(exported_bytes("_ZTVN8xrt_core6systemE") == 0x70);
  CHECK(exported_bytes("no_such_symbol") == 0);
}

TEST_CASE("a program that knows nothing of it runs on it, and is told that it is no hardware") {
  if (skips_for_xrt()) return;
  const TestFolder folder;
  const std::string said = folder.file("said");
  const std::string command = std::string("XILINX_XRT=" SLUICE_SOFT_XRT_FOLDER
                                          " " SLUICE_PLAIN_PROGRAM " " SLUICE_TEST_XCLBIN " >") +
                              said + " 2>&1";
  CHECK(std::system(command.c_str()) == 0);
  std::ifstream file(said);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(text, Catch::Contains("SOFTWARE SmartSSD") && Catch::Contains("TEST PASSED"));
}
