#include "soft/accelerator/placing.h"

#include <c10/core/CPUAllocator.h>

#include "soft/accelerator/accelerator.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

thread_local Placing* active = nullptr;

// Libraries under libtorch take and give by raw pointers, so that every pointer is its own context
// and every deleter the one of raw_deleter().
class PlacingAllocator final : public c10::Allocator {
 public:
  explicit PlacingAllocator(c10::Allocator& others) { others_ = &others; }

  c10::DataPtr allocate(std::size_t size_bytes) override {
    void* memory = active != nullptr ? active->take(size_bytes) : nullptr;
    if (memory == nullptr) memory = others_->raw_allocate(size_bytes);
    return {memory, memory, &PlacingAllocator::release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &PlacingAllocator::release; }
  void copy_data(void* to, const void* from, std::size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }

 private:
  static void release(void* memory) {
    if (memory != nullptr && Accelerator::instance().is_device_memory(memory)) {
      if (active != nullptr) active->give(memory);
      return;
    }
    others_->raw_deallocate(memory);
  }

  static inline c10::Allocator* others_ = nullptr;
};

}  // namespace

Placing::Placing(std::vector<Place> places) : places_(std::move(places)) { active = this; }

Placing::~Placing() { active = nullptr; }

void* Placing::take(std::size_t size_bytes) {
  for (Place& place : places_) {
    if (place.is_taken || place.size_bytes != size_bytes) continue;
    place.is_taken = true;
    return place.memory;
  }
  return nullptr;
}

void Placing::give(void* memory) {
  for (Place& place : places_)
    if (place.memory == memory) place.is_taken = false;
}

void replace_cpu_allocator() {
  static auto* const allocator = new PlacingAllocator(*c10::GetCPUAllocator());
  c10::SetCPUAllocator(allocator);
}

}  // namespace sluice::soft_accelerator
