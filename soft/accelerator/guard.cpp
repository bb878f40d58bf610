// Devices, streams and events, as libtorch asks for them.

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/util/Exception.h>

#include "soft/accelerator/current.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

Accelerator& accelerator() { return Accelerator::instance(); }

c10::Device device_of_index(int index) {
  return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index)};
}

c10::Stream as_stream(int device, std::int64_t id) {
  return c10::Stream(c10::Stream::UNSAFE, device_of_index(device), id);
}

Event& as_event(void* event) { return *static_cast<Event*>(event); }

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kPrivateUse1; }

  // ---- devices
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return device_of_index(current().device); }
  void setDevice(c10::Device device) const override {
    const int index = device_or_current(device.index());
    TORCH_CHECK(index < accelerator().device_count(), "software accelerator: there is no ", device,
                ", but ", accelerator().device_count(), " devices");
    current().device = index;
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    current().device = device_or_current(device.index());
  }
  c10::DeviceIndex deviceCount() const noexcept override {
    return static_cast<c10::DeviceIndex>(accelerator().device_count());
  }
  void synchronizeDevice(const c10::DeviceIndex device) const override {
    accelerator().synchronize_device(device_or_current(device));
  }

  // ---- streams
  c10::Stream getStream(c10::Device device) const override {
    const int index = device_or_current(device.index());
    return as_stream(index, current().stream_of(index));
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return as_stream(device_or_current(device.index()), 0);
  }
  c10::Stream getNewStream(c10::Device device, int /*priority*/) const override {
    const int index = device_or_current(device.index());
    return as_stream(index, accelerator().new_stream(index));
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool /*is_urgent*/) const override {
    const int index = device_or_current(device.index());
    return as_stream(index, accelerator().pooled_stream(index));
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    const c10::Stream before = getStream(stream.device());
    current().stream_of(device_or_current(stream.device_index())) = stream.id();
    return before;
  }
  bool queryStream(const c10::Stream& stream) const override {
    return accelerator().query_stream(stream.device_index(), stream.id());
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    accelerator().synchronize_stream(stream.device_index(), stream.id());
  }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    c10::getDeviceAllocator(c10::kPrivateUse1)->recordStream(memory, stream);
  }

  // ---- events
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex /*device*/,
              const c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Event;
    accelerator().record(as_event(*event), stream.device_index(), stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) accelerator().block(as_event(event), stream.device_index(), stream.id());
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || accelerator().query(as_event(event));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) accelerator().synchronize(as_event(event));
  }
  void destroyEvent(void* event, const c10::DeviceIndex /*device*/) const noexcept override {
    delete static_cast<Event*>(event);
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex /*device*/) const override {
    TORCH_CHECK(from != nullptr && to != nullptr, "software accelerator: an event is not recorded");
    const std::int64_t begin = *as_event(from).time_ns, end = *as_event(to).time_ns;
    TORCH_CHECK(begin != 0 && end != 0, "software accelerator: an event is not over yet");
    return static_cast<double>(end - begin) * 1e-6;
  }
};

}  // namespace

void register_guard() {
  static auto* const guard = new Guard;
  static const c10::impl::DeviceGuardImplRegistrar registrar(c10::kPrivateUse1, guard);
}

}  // namespace sluice::soft_accelerator
