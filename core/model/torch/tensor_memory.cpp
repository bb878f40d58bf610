#include "core/model/torch/tensor_memory.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "core/model/torch/check.h"

namespace sluice::model {
namespace {

struct Mapping {
  void* address;
  std::int64_t size_bytes;
};

void unmap(const Mapping& mapping) {
  CHECK_EQ(::munmap(mapping.address, static_cast<std::size_t>(mapping.size_bytes)), 0);
}

class TensorMemory final : public c10::Allocator {
 public:
  explicit TensorMemory(c10::Allocator& small) : small_(small) {}

  c10::DataPtr allocate(std::size_t size_bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return &TensorMemory::release; }
  void copy_data(void* to, const void* from, std::size_t size_bytes) const override {
    default_copy_data(to, from, size_bytes);
  }
  TensorMemoryUse use();

 private:
  static void release(void* address);
  Mapping take(std::int64_t size_bytes);
  void make_room(std::int64_t size_bytes);

  c10::Allocator& small_;
  std::mutex mutex_;  // guards all below
  std::unordered_map<void*, std::int64_t> in_use_;
  std::vector<Mapping> waiting_;  // the longest waiting first
  TensorMemoryUse use_{};
};

TensorMemory* the_memory = nullptr;  // set once, before libtorch knows of it; never destroyed

c10::DataPtr TensorMemory::allocate(std::size_t size_bytes) {
  if (static_cast<std::int64_t>(size_bytes) < kLargeTensorBytes) {
    void* const address = small_.raw_allocate(size_bytes);
    return {address, address, &TensorMemory::release, c10::Device(c10::DeviceType::CPU)};
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto whole_pages = static_cast<std::int64_t>((size_bytes + page - 1) / page * page);
  const std::lock_guard lock(mutex_);
  const Mapping mapping = take(whole_pages);
  in_use_.emplace(mapping.address, mapping.size_bytes);
  use_.in_use_bytes += mapping.size_bytes;
  use_.peak_in_use_bytes = std::max(use_.peak_in_use_bytes, use_.in_use_bytes);
  return {mapping.address, mapping.address, &TensorMemory::release,
          c10::Device(c10::DeviceType::CPU)};
}

// The mapping that waits the shortest, which may still be in the processor's cache; or a new one.
Mapping TensorMemory::take(std::int64_t size_bytes) {
  const auto found = std::find_if(waiting_.rbegin(), waiting_.rend(), [&](const Mapping& mapping) {
    return mapping.size_bytes == size_bytes;
  });
  if (found != waiting_.rend()) {
    const Mapping mapping = *found;
    waiting_.erase(std::next(found).base());
    use_.waiting_bytes -= size_bytes;
    return mapping;
  }
  make_room(size_bytes);
  void* const address = ::mmap(nullptr, static_cast<std::size_t>(size_bytes),
                               PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) throw std::bad_alloc();  // at_torch_border() says what to do
  return {address, size_bytes};
}

void TensorMemory::make_room(std::int64_t size_bytes) {
  const std::int64_t in_use = use_.in_use_bytes + size_bytes;
  const std::int64_t most = std::max(use_.peak_in_use_bytes, in_use) + kSpareBytes;
  auto kept = waiting_.begin();
  for (; kept != waiting_.end() && in_use + use_.waiting_bytes > most; ++kept) {
    unmap(*kept);
    use_.waiting_bytes -= kept->size_bytes;
  }
  waiting_.erase(waiting_.begin(), kept);
}

void TensorMemory::release(void* address) {
  TensorMemory& memory = *the_memory;
  {
    const std::lock_guard lock(memory.mutex_);
    const auto found = memory.in_use_.find(address);
    if (found != memory.in_use_.end()) {
      memory.waiting_.push_back({address, found->second});
      memory.use_.waiting_bytes += found->second;
      memory.use_.in_use_bytes -= found->second;
      memory.in_use_.erase(found);
      return;
    }
  }
  memory.small_.raw_deallocate(address);
}

TensorMemoryUse TensorMemory::use() {
  const std::lock_guard lock(mutex_);
  return use_;
}

}  // namespace

void use_tensor_memory() {
  static const bool is_used = [] {
    the_memory = new TensorMemory(*c10::GetCPUAllocator());
    c10::SetCPUAllocator(the_memory);
    return true;
  }();
  CHECK(is_used);
}

TensorMemoryUse tensor_memory_use() {
  use_tensor_memory();
  return the_memory->use();
}

}  // namespace sluice::model
