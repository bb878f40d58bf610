// The allocators of device and of pinned memory, as libtorch knows them. A pointer's context is its
// Block.

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/Exception.h>

#include "soft/accelerator/current.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

void* start_of(const Block* block) { return reinterpret_cast<void*>(block->range.begin); }

class DeviceMemory final : public c10::DeviceAllocator {
 public:
  c10::DataPtr allocate(std::size_t size_bytes) override {
    const int index = current().device;
    const c10::Device device(c10::kPrivateUse1, static_cast<c10::DeviceIndex>(index));
    if (size_bytes == 0) return {nullptr, device};
    Block* const block = Accelerator::instance().allocate(index, current().stream_of(index),
                                                          static_cast<std::int64_t>(size_bytes));
    return {start_of(block), block, &DeviceMemory::release, device};
  }
  void copy_data(void* /*to*/, const void* /*from*/, std::size_t /*size*/) const override {
    TORCH_CHECK(false, "software accelerator: its memory is copied by streams only");
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t /*pool*/) override {}  // nothing is cached
  void recordStream(const c10::DataPtr& memory, c10::Stream stream) override {
    if (memory.get_deleter() != &DeviceMemory::release) return;
    Accelerator::instance().use_on_stream(static_cast<Block*>(memory.get_context()),
                                          stream.device_index(), stream.id());
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex device) override {
    const auto counters = Accelerator::instance().counters(device_or_current(device));
    c10::CachingDeviceAllocator::DeviceStats stats;
    for (auto* const all : {&stats.allocated_bytes, &stats.reserved_bytes, &stats.active_bytes,
                            &stats.requested_bytes}) {
      (*all)[0].current = counters.used_bytes;
      (*all)[0].peak = counters.peak_bytes;
    }
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex /*device*/) override {}
  void resetPeakStats(c10::DeviceIndex device) override {
    Accelerator::instance().reset_peak(device_or_current(device));
  }
  std::pair<std::size_t, std::size_t> getMemoryInfo(c10::DeviceIndex device) override {
    const auto counters = Accelerator::instance().counters(device_or_current(device));
    const auto cap = static_cast<std::size_t>(counters.cap_bytes);
    const auto used = static_cast<std::size_t>(counters.used_bytes);
    return {cap - std::min(cap, used), cap};
  }

 private:
  static void release(void* block) { Accelerator::instance().release(static_cast<Block*>(block)); }
};

class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size_bytes) override {
    if (size_bytes == 0) return {nullptr, c10::Device(c10::kCPU)};
    Block* const block =
        Accelerator::instance().allocate_pinned(static_cast<std::int64_t>(size_bytes));
    return {start_of(block), block, &PinnedMemory::release, c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, std::size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }

 private:
  static void release(void* block) {
    Accelerator::instance().release_pinned(static_cast<Block*>(block));
  }
};

}  // namespace

void register_allocator() {
  static auto* const memory = new DeviceMemory;
  c10::SetAllocator(c10::kPrivateUse1, memory);
}

c10::Allocator& pinned_memory() {
  static auto* const memory = new PinnedMemory;
  return *memory;
}

}  // namespace sluice::soft_accelerator
