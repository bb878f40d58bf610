#pragma once
// The memory of the offload, planned before it is taken and taken before step 0 (D9).
//
// Thread contract: made by one thread; the spans are handed to operations.

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "core/csd/device_memory.h"
#include "core/model/flat_layout.h"
#include "core/offload/compress_memory.h"
#include "core/offload/gradient_format.h"
#include "core/offload/offload_options.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

inline constexpr std::int32_t kLayerGradientCount = 2;  // layers' gradients that exist at once
// Sparse gradients being written: they are small, so a few keep the drives as busy as they can be.
inline constexpr std::int32_t kSparseBufferCount = 8;

// One subgroup in flight: where its arrays are while they are read, updated and written. In host
// memory for method=host, in the device's for method=csd.
struct BufferSet {
  // As many as the geometry has variables, master_weights first; the rest are empty.
  std::array<std::span<std::byte>, optimizer::kMaxStateArrays> state;
  std::span<std::byte> gradient;
  std::span<std::byte> parameters;  // csd with wire=native: the 16-bit copy, before it goes up
};

struct OffloadMemoryPlan {
  std::int64_t layer_gradient_bytes = 0;  // all of them
  std::int64_t bounce_bytes = 0;          // all of them
  std::int64_t gradient_store_bytes = 0;  // gradient_tier=memory: all gradients
  std::int64_t compress_bytes = 0;        // density < 1: what is kept, and the selection's work
  std::int64_t residual_bytes = 0;        // error_feedback
  std::int64_t host_set_bytes = 0;        // method=host: all buffer sets
  std::int64_t device_set_bytes = 0;      // method=csd: one device's buffer sets
  std::int64_t set_bytes = 0;             // one buffer set

  std::int64_t host_bytes() const {
    return layer_gradient_bytes + bounce_bytes + gradient_store_bytes + compress_bytes +
           residual_bytes + host_set_bytes;
  }
};
OffloadMemoryPlan plan_offload_memory(const OffloadOptions& options,
                                      const state::Geometry& geometry,
                                      const model::FlatLayout& layout);

class OffloadMemory {
 public:
  // `device_memories` has one entry a device, from which method=csd takes its buffer sets.
  static Result<std::unique_ptr<OffloadMemory>> make(
      const OffloadOptions& options, const state::Geometry& geometry,
      const model::FlatLayout& layout, std::vector<csd::DeviceMemory>& device_memories,
      csd::Payload payload);

  std::span<std::byte> layer_gradient(std::int32_t index) { return layer_gradients_[at(index)]; }
  std::span<std::byte> bounce(std::int32_t index) { return bounces_[at(index)]; }
  std::span<std::byte> carry() { return carry_; }
  // density < 1.
  std::span<std::byte> sparse_buffer(std::int32_t index) { return sparse_buffers_[at(index)]; }
  CompressMemory& compress() { return *compress_; }
  bool has_compress() const { return compress_.has_value(); }
  // gradient_tier=memory: where a subgroup's gradient waits for its update.
  std::span<std::byte> gradient(SubgroupId subgroup) { return gradients_[at(index_of(subgroup))]; }
  const BufferSet& set(DeviceId device, std::int32_t index) const {
    return sets_[at(index_of(device))][at(index)];
  }
  csd::Payload payload() const { return payload_; }
  // Host memory that transfers use, for registration with the I/O engine.
  std::vector<std::span<std::byte>> transfer_regions();

 private:
  explicit OffloadMemory(csd::Payload payload) : payload_(payload) {}
  static std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }
  Result<std::span<std::byte>> take_host(std::int64_t size_bytes);
  Status take_sparse_buffers(const OffloadOptions& options, const GradientFormat& format);
  Status take_gradients(const OffloadOptions& options, const GradientFormat& format,
                        std::int32_t subgroup_count);
  Result<BufferSet> take_set(const OffloadOptions& options, const state::Geometry& geometry,
                             const GradientFormat& format, csd::DeviceMemory& device_memory);

  csd::Payload payload_;
  std::vector<io::PageAlignedBuffer> host_buffers_;
  std::vector<std::span<std::byte>> layer_gradients_;
  std::vector<std::span<std::byte>> bounces_;
  std::span<std::byte> carry_;
  std::vector<std::span<std::byte>> sparse_buffers_;
  std::optional<CompressMemory> compress_;
  io::PageAlignedBuffer gradient_store_;
  std::vector<std::span<std::byte>> gradients_;  // parts of it, by subgroup
  std::vector<std::vector<BufferSet>> sets_;
};

}  // namespace sluice::offload
