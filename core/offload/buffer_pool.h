#pragma once
// Buffers of one size and who may use them: a lease is a buffer, which gives itself back. Without
// payload the buffers are empty, and only counted.
//
// Thread contract: the schedule's thread.

#include <span>
#include <vector>

#include "core/runtime/sync.h"

namespace sluice::offload {

class BufferPool {
 public:
  BufferPool(runtime::Runtime& runtime, std::vector<std::span<std::byte>> buffers)
      : buffers_(std::move(buffers)), pool_(runtime, static_cast<std::int32_t>(buffers_.size())) {}

  runtime::Pool::Awaiter acquire(runtime::Waiting waiting) { return pool_.acquire(waiting); }
  std::span<std::byte> bytes(const runtime::Pool::Lease& lease) const {
    return buffers_[static_cast<std::size_t>(lease.index())];
  }

 private:
  std::vector<std::span<std::byte>> buffers_;
  runtime::Pool pool_;
};

// The part of a message about a stuck schedule that says who waits.
inline runtime::Waiting waiting_for(const char* what, DeviceId device, SubgroupId subgroup) {
  runtime::Waiting waiting;
  waiting.what = what;
  waiting.device = device;
  waiting.subgroup = subgroup;
  return waiting;
}
inline runtime::Waiting waiting_for(const char* what, LayerId layer) {
  runtime::Waiting waiting;
  waiting.what = what;
  waiting.layer = layer;
  return waiting;
}

// The part of a buffer from `first_bytes` on; empty without payload.
inline std::span<std::byte> part_of(std::span<std::byte> bytes, std::int64_t first_bytes) {
  return bytes.empty() ? bytes : bytes.subspan(static_cast<std::size_t>(first_bytes));
}

}  // namespace sluice::offload
