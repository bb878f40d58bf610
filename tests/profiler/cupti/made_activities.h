#pragma once
// Buffers of real CUpti_Activity structs, made record by record, and what walks them: libcupti's
// own iterator where it can be loaded (it needs no driver), else a plain one over the structs'
// sizes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/cupti/activity_buffers.h"
#include "profiler/cupti/activity_structs.h"
#include "profiler/cupti/record_walk.h"

namespace sluice::cupti {

// Prints once which one it is.
NextRecord iterator_at_hand();
// The plain one, whatever is at hand.
CUptiResult plain_next_record(std::uint8_t* buffer, std::size_t valid_bytes,
                              CUpti_Activity** record);

// What tests say of work of the GPU; the rest of the structs is zero, but for `bytes` and kinds.
struct MadeWork {
  const char* name = "kernel";
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t correlation = 0;
  std::uint32_t gpu = 0;
  std::uint32_t context = 1;
  std::uint32_t stream = 7;
  std::uint64_t bytes = 0;
};

KernelActivity made_kernel(const MadeWork& work);
MemcpyActivity made_memcpy(const MadeWork& work, CUpti_ActivityMemcpyKind kind,
                           CUpti_ActivityMemoryKind from, CUpti_ActivityMemoryKind to);
PeerMemcpyActivity made_peer_memcpy(const MadeWork& work, std::uint32_t from_gpu,
                                    std::uint32_t to_gpu);
MemsetActivity made_memset(const MadeWork& work);
AllocationActivity made_allocation(const MadeWork& work, CUpti_ActivityMemoryKind kind);
MemoryActivity made_memory(const MadeWork& work, CUpti_ActivityMemoryKind kind,
                           CUpti_ActivityMemoryOperationType operation);
OverheadActivity made_overhead(const MadeWork& work, CUpti_ActivityOverheadKind kind);
SynchronizationActivity made_synchronization(const MadeWork& work,
                                             CUpti_ActivitySynchronizationType type);
ApiActivity made_call(const MadeWork& work, CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_RUNTIME);
// As regions of a recording push them.
ExternalCorrelationActivity made_step(std::uint32_t correlation, std::uint64_t step);
ExternalCorrelationActivity made_layer(std::uint32_t correlation, std::uint64_t layer);

// Records one behind the other, on the heap and not a byte longer, so that a sanitizer sees a read
// behind them.
class MadeBuffer {
 public:
  template <typename Activity>
  MadeBuffer& add(const Activity& activity) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&activity);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof activity);
    return *this;
  }
  std::size_t size() const { return bytes_.size(); }
  std::vector<std::uint8_t>& bytes() { return bytes_; }

  // A copy of the first `size` bytes of it.
  struct Copy {
    std::unique_ptr<std::uint8_t[]> data;
    std::size_t size;
    CompletedBuffer completed() const { return {data.get(), size}; }
  };
  Copy copy(std::size_t size) const;
  Copy copy() const { return copy(bytes_.size()); }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace sluice::cupti
