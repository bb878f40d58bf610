// The functions that libtorch asks of an accelerator, beside streams. Random numbers come from the
// generator of the CPU, whose kernels use them.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "soft/accelerator/current.h"
#include "soft/accelerator/resize.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*device*/) const override { return true; }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override {
    return static_cast<c10::DeviceIndex>(Accelerator::instance().device_count());
  }
  void setCurrentDevice(c10::DeviceIndex device) const override { current().device = device; }
  c10::DeviceIndex getCurrentDevice() const override {
    return static_cast<c10::DeviceIndex>(current().device);
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = getCurrentDevice();
    current().device = device;
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex device) const override {
    const c10::DeviceIndex before = getCurrentDevice();
    if (device >= 0) current().device = device;
    return before;
  }
  bool isPinnedPtr(const void* address) const override {
    return Accelerator::instance().is_pinned(address);
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  c10::Device getDeviceFromPtr(void* address) const override {
    const int device = Accelerator::instance().device_of(address);
    TORCH_CHECK(device >= 0, "software accelerator: ", address, " is no address of a device");
    return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(device)};
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*device*/) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, std::size_t size_bytes) const override {
    resize_storage(*storage.unsafeGetStorageImpl(), size_bytes);
  }
};

}  // namespace

void register_hooks() {
  static auto* const hooks = new Hooks;
  at::RegisterPrivateUse1HooksInterface(hooks);
}

}  // namespace sluice::soft_accelerator
