// A program against XRT's documented interface, on one software SmartSSD: buffers, runs, and what
// is refused.

#include <algorithm>
#include <numeric>

#include "experimental/xrt_ip.h"
#include "experimental/xrt_system.h"
#include "tests/soft/smartssd/soft_xrt.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

namespace {

constexpr int kCount = 1024;  // whole pages: XRT's aligned_alloc of another size is refused by asan
constexpr std::size_t kBytes = kCount * sizeof(std::int32_t);

}  // namespace

TEST_CASE("the devices are enumerated, and by their names no hardware") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("devices=3");
  CHECK(xrt::system::enumerate_devices() == 3);
  const xrt::device device(2u);
  CHECK(device.get_info<xrt::info::device::bdf>() == "5357:03:00.1");
  CHECK(device.get_info<xrt::info::device::name>() == "sluice_software_smartssd_1");
  CHECK(xrt::device("5357:02:00.1").get_info<xrt::info::device::bdf>() == "5357:02:00.1");
  CHECK_THROWS_WITH(xrt::device(3u), Catch::Contains("no device 3"));
}

TEST_CASE("settings that are not known are refused in words, not ignored") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("device=3");
  CHECK_THROWS_WITH(xrt::device(0u), Catch::Contains("did you mean 'devices'"));
}

TEST_CASE("a kernel adds two buffers, and a sync that is missing shows") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel vadd = loaded.kernel("vadd");
  xrt::bo a(loaded.device, kBytes, vadd.group_id(0));
  xrt::bo b(loaded.device, kBytes, vadd.group_id(1));
  xrt::bo sum(loaded.device, kBytes, vadd.group_id(2));
  auto* const host_a = a.map<std::int32_t*>();
  auto* const host_b = b.map<std::int32_t*>();
  auto* const host_sum = sum.map<std::int32_t*>();
  std::iota(host_a, host_a + kCount, 1);
  std::fill_n(host_b, kCount, 10);
  std::fill_n(host_sum, kCount, -1);
  a.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  b.sync(XCL_BO_SYNC_BO_TO_DEVICE);

  auto run = vadd(a, b, sum, kCount);
  REQUIRE(run.wait(kLong) == ERT_CMD_STATE_COMPLETED);
  CHECK(host_sum[0] == -1);  // the host's copy
  sum.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(host_sum[0] == 11);
  CHECK(host_sum[kCount - 1] == kCount + 10);

  host_a[0] = 1000;  // the device's copy has 1
  REQUIRE(vadd(a, b, sum, kCount).wait(kLong) == ERT_CMD_STATE_COMPLETED);
  sum.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(host_sum[0] == 11);
}

TEST_CASE("a buffer is poisoned when it is allocated") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  for (int round = 0; round < 2; ++round) {  // the second time in the memory of the first
    xrt::bo buffer(loaded.device, kBytes, 0);
    buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
    const auto* bytes = buffer.map<const std::uint8_t*>();
    CHECK(std::all_of(bytes, bytes + kBytes, [](std::uint8_t byte) { return byte == 0xd5; }));
    std::fill_n(buffer.map<std::uint8_t*>(), kBytes, std::uint8_t{0});
    buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  }
}

TEST_CASE("parts of a buffer are buffers, and buffers are copied on the device") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel scale = loaded.kernel("scale");
  xrt::bo whole(loaded.device, 4 * 4096, scale.group_id(0));
  auto* const host = whole.map<std::uint32_t*>();
  std::fill_n(host, 4 * 1024, 5u);
  whole.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  xrt::bo part(whole, 4096, 2 * 4096);
  REQUIRE(scale(part, 3u, std::uint64_t{1024}).wait(kLong) == ERT_CMD_STATE_COMPLETED);
  part.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(host[2 * 1024 - 1] == 5);
  CHECK(host[2 * 1024] == 16);
  CHECK(host[3 * 1024 - 1] == 16);
  CHECK(host[3 * 1024] == 5);

  xrt::bo other(loaded.device, 4096, scale.group_id(0));
  other.copy(whole, 4096, 2 * 4096, 0);
  other.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(other.map<std::uint32_t*>()[1023] == 16);
}

TEST_CASE("a range outside of a buffer is refused") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::bo buffer(loaded.device, 4096, 0);
  CHECK_THROWS(buffer.sync(XCL_BO_SYNC_BO_TO_DEVICE, 4096, 1));
  xrt::bo other(loaded.device, 8192, 0);
  CHECK_THROWS(other.copy(buffer, 8192, 0, 0));
}

TEST_CASE("what a SmartSSD lacks is refused: host memory, a second bank, an unknown kernel") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  CHECK_THROWS_WITH(xrt::bo(loaded.device, 4096, xrt::bo::flags::host_only, 0),
                    Catch::Contains("host_only"));
  CHECK_THROWS_WITH(xrt::bo(loaded.device, 4096, 1), Catch::Contains("bank 1"));
  CHECK_THROWS_WITH(loaded.kernel("vsub"), Catch::Contains("vsub"));
}

TEST_CASE("a full device says so, and has room again when a buffer is gone") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("memory_mib=64");
  const auto loaded = soft.open();
  std::vector<xrt::bo> buffers;
  for (int i = 0; i < 4; ++i) buffers.emplace_back(loaded.device, 16 << 20, xrt::bo::flags::p2p, 0);
  CHECK_THROWS_AS(xrt::bo(loaded.device, 4096, 0), std::bad_alloc);
  buffers.pop_back();
  CHECK_NOTHROW(xrt::bo(loaded.device, 16 << 20, 0));
}

TEST_CASE("a kernel that writes behind its buffer, or is given no buffer, ends in an error") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel overrun = loaded.kernel("overrun");
  xrt::bo buffer(loaded.device, 4096, overrun.group_id(0));
  CHECK(overrun(buffer, std::uint64_t{1024}).wait(kLong) == ERT_CMD_STATE_ERROR);
  CHECK(overrun(buffer, std::uint64_t{1023}).wait(kLong) == ERT_CMD_STATE_COMPLETED);

  xrt::run run(overrun);
  {
    const xrt::bo gone(loaded.device, 4096, overrun.group_id(0));
    run.set_arg(0, gone);
    run.set_arg(1, std::uint64_t{10});
    buffer = {};
  }
  run.set_arg(0, std::uint64_t{0x80000000});  // an address, in no buffer
  run.start();
  CHECK(run.wait(kLong) == ERT_CMD_STATE_ERROR);
}

TEST_CASE("a unit is driven by its registers") {
  if (skips_for_xrt()) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::bo value(loaded.device, 4096, 0);
  value.map<std::uint32_t*>()[0] = 20;
  value.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  xrt::ip unit(loaded.device, loaded.xclbin, "scale:{scale_1}");
  CHECK((unit.read_register(0) & 4) != 0);  // idle
  unit.write_register(0x10, static_cast<std::uint32_t>(value.address()));
  unit.write_register(0x14, static_cast<std::uint32_t>(value.address() >> 32));
  unit.write_register(0x1c, 2);
  unit.write_register(0x24, 1);
  unit.write_register(0x28, 0);
  unit.write_register(0, 1);
  CHECK(eventually([&] { return (unit.read_register(0) & 2) != 0; }));
  value.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(value.map<std::uint32_t*>()[0] == 41);
}

TEST_CASE("a buffer of one device is read by another through an export") {
  if (skips_for_xrt()) return;
  const SoftXrt soft("devices=2");
  const auto first = soft.open(0);
  const auto second = soft.open(1);
  xrt::bo source(first.device, 4096, 0);
  std::fill_n(source.map<std::uint32_t*>(), 1024, 77u);
  source.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  xrt::bo imported(second.device, source.export_buffer());
  xrt::bo target(second.device, 4096, 0);
  target.copy(imported, 4096);
  target.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  CHECK(target.map<std::uint32_t*>()[1023] == 77);
  xrt::kernel scale = second.kernel("scale");  // it reaches its own device's memory alone
  CHECK(scale(imported, 2u, std::uint64_t{1}).wait(kLong) == ERT_CMD_STATE_ERROR);
}

TEST_CASE("each device has kernels of its own, which begin anew with it") {
  if (skips_for_xrt()) return;
  for (int round = 0; round < 2; ++round) {
    const SoftXrt soft("devices=2");
    const auto first = soft.open(0);
    const auto second = soft.open(1);
    const auto total = [](const SoftXrt::Loaded& loaded) {
      xrt::kernel count_runs = loaded.kernel("count_runs");
      xrt::bo buffer(loaded.device, 4096, 0);
      REQUIRE(count_runs(buffer).wait(kLong) == ERT_CMD_STATE_COMPLETED);
      buffer.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
      return buffer.map<std::int32_t*>()[0];
    };
    CHECK(total(first) == 1);
    CHECK(total(first) == 2);
    CHECK(total(second) == 1);
  }
}
