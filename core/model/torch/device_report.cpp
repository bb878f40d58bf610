#include "core/model/torch/device_report.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/headeronly/version.h>

#include "base/status.h"
#include "core/model/torch/devices.h"
#include "core/model/torch/torch_border.h"

namespace sluice::model {
namespace {

void ask_peers(DeviceReport& report) {
  const auto count = static_cast<int>(report.gpus.size());
  auto* const can_access = cuda_function<int(int*, int, int)>("cudaDeviceCanAccessPeer");
  if (can_access == nullptr || count < 2) return;
  int pairs = 0;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      int can = 0;
      if (from == to) continue;
      if (can_access(&can, from, to) != 0) return;
      pairs += can;
    }
  }
  report.peer_pairs = pairs;
}

Status ask_gpus(DeviceReport& report) {
  constexpr auto kCuda = c10::DeviceType::CUDA;
  report.has_cuda_build = c10::impl::hasDeviceGuardImpl(kCuda);
  if (!report.has_cuda_build) return ok_status();
  if (auto* const version = cuda_function<int(int*)>("cudaRuntimeGetVersion"); version != nullptr)
    version(&report.cuda_version);
  const int count = c10::impl::getDeviceGuardImpl(kCuda)->deviceCount();
  if (count == 0) return ok_status();
  at::globalContext().lazyInitDevice(kCuda);
  for (int i = 0; i < count; ++i) {
    const auto [free_bytes, all_bytes] =
        c10::getDeviceAllocator(kCuda)->getMemoryInfo(static_cast<c10::DeviceIndex>(i));
    report.gpus.push_back(
        {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(all_bytes)});
  }
  ask_peers(report);
  return ok_status();
}

}  // namespace

DeviceReport report_devices() {
  DeviceReport report;
  report.torch_version = TORCH_VERSION;
  const Status asked =
      at_torch_border("asking for GPUs", [&]() -> Status { return ask_gpus(report); });
  if (!asked.ok()) report.problem = asked.error().message();
  report.soft_library = soft_library_path();
  if (const Status found = find_soft_library(); !found.ok())
    report.soft_problem = found.error().message();
  return report;
}

}  // namespace sluice::model
