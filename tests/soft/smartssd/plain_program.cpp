// As a vendor's example is: XRT's interface, one xclbin, TEST PASSED. Nothing of Sluice.

#include <xrt/xrt_bo.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const xrt::device device(0u);
  const xrt::uuid xclbin = xrt::device(device).load_xclbin(std::string(argv[1]));
  xrt::kernel vadd(device, xclbin, "vadd");
  xrt::bo a(device, 4096, vadd.group_id(0));
  xrt::bo b(device, 4096, xrt::bo::flags::p2p, vadd.group_id(1));
  xrt::bo sum(device, 4096, vadd.group_id(2));
  for (int i = 0; i < 1024; ++i) {
    a.map<int*>()[i] = i;
    b.map<int*>()[i] = 2 * i;
  }
  a.sync(XCL_BO_SYNC_BO_TO_DEVICE);
  xrt::run run = vadd(a, b, sum, 1024);
  run.wait();
  sum.sync(XCL_BO_SYNC_BO_FROM_DEVICE);
  for (int i = 0; i < 1024; ++i) {
    if (sum.map<int*>()[i] != 3 * i) return 1;
  }
  std::puts("TEST PASSED");
  return 0;
}
