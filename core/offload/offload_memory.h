#pragma once
// The host memory of the offload, planned before it is taken and taken before step 0 (D9). Buffer
// sets belong to the sites that use them (update_site.h); their sizes are planned here.
//
// Thread contract: made by one thread; the spans are handed to operations.

#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "base/id_vector.h"
#include "base/memory_item.h"
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

// One subgroup in flight: its state's arrays, its gradient, and its 16-bit copy before that goes up
// from a device that makes one, or to a drive. In host memory for method=host, in the device's for
// method=csd. Whole pages; 0: not needed.
struct SetSizes {
  std::array<std::int64_t, kMaxStoredArrays> state_bytes{};  // of each array
  std::int64_t gradient_bytes = 0;
  std::int64_t parameter_bytes = 0;
  std::int64_t total_bytes() const {
    return std::accumulate(state_bytes.begin(), state_bytes.end(),
                           gradient_bytes + parameter_bytes);
  }
};

struct OffloadMemoryPlan {
  std::int64_t layer_gradient_bytes = 0;  // all of them
  std::int64_t bounce_bytes = 0;          // all of them
  std::int64_t gradient_store_bytes = 0;  // gradient_tier=memory: all gradients
  std::int64_t compress_bytes = 0;        // density < 1: what is kept, and the selection's work
  std::int64_t residual_bytes = 0;        // error_feedback
  std::int64_t host_set_bytes = 0;        // method=host: all buffer sets
  std::int64_t device_set_bytes = 0;      // method=csd: one device's buffer sets
  std::int64_t parameter_copy_bytes = 0;  // method=csd: of one device's 16-bit copies that go up
  std::int64_t set_bytes = 0;             // one buffer set

  std::int64_t host_bytes() const {
    return layer_gradient_bytes + bounce_bytes + gradient_store_bytes + compress_bytes +
           residual_bytes + host_set_bytes;
  }
};
OffloadMemoryPlan plan_offload_memory(const OffloadOptions& options,
                                      const state::Geometry& geometry,
                                      const model::FlatLayout& layout);
// Whose memory a device's is: that of an emulated one is the host's. Beside one of its own the host
// has a copy of the 16-bit parameters that come up.
enum class DeviceMemoryIs : std::uint8_t { host, own };
// Its items in the memory plan of a run.
MemoryItems memory_items(const OffloadMemoryPlan& plan, const OffloadOptions& options,
                         std::int32_t device_count, DeviceMemoryIs device_memory);

class OffloadMemory {
 public:
  // Without payload every buffer is empty, and only the sizes are known. What an
  // accelerator may bring lies in `pinned` memory: the layers' gradients, or what it has made of
  // them.
  static Result<std::unique_ptr<OffloadMemory>> make(const OffloadOptions& options,
                                                     const state::Geometry& geometry,
                                                     const model::FlatLayout& layout,
                                                     const GradientFormat& format,
                                                     csd::Payload payload,
                                                     io::PinnedMemory& pinned);

  const SetSizes& set_sizes() const { return set_sizes_; }
  const std::vector<std::span<std::byte>>& layer_gradients() const { return layer_gradients_; }
  const std::vector<std::span<std::byte>>& bounces() const { return bounces_; }
  // density < 1.
  const std::vector<std::span<std::byte>>& sparse_buffers() const { return sparse_buffers_; }
  std::span<std::byte> carry() { return carry_; }
  // OffloadOptions::sums_come(): the sums of squares of a layer's blocks, and with overlap=local of
  // its parts, as they come; empty without payload.
  std::span<double> block_sums() { return block_sums_; }
  CompressMemory& compress() { return *compress_; }
  bool has_compress() const { return compress_.has_value(); }
  // gradient_tier=memory: where a subgroup's gradient waits for its update.
  std::span<std::byte> gradient(SubgroupId subgroup) { return gradients_[subgroup]; }
  // A buffer for somebody else; empty without payload.
  Result<io::PageAlignedBuffer> take(std::int64_t size_bytes) const;
  // Memory that transfers use, for registration with the I/O engine.
  std::vector<std::span<std::byte>> transfer_regions();

 private:
  explicit OffloadMemory(csd::Payload payload) : payload_(payload) {}
  Result<std::span<std::byte>> take_own(std::int64_t size_bytes);
  Result<std::vector<std::span<std::byte>>> take_own(std::int32_t count, std::int64_t size_bytes);
  Status take_layer_gradients(std::int64_t size_bytes, io::PinnedMemory& pinned);
  Status take_accelerator_results(const OffloadOptions& options, const state::Geometry& geometry,
                                  const model::FlatLayout& layout, io::PinnedMemory& pinned);
  Status take_compress(const OffloadOptions& options, const state::Geometry& geometry,
                       const GradientFormat& format, io::PinnedMemory& pinned);
  Status take_gradients(const OffloadOptions& options, const GradientFormat& format,
                        std::int32_t subgroup_count);

  csd::Payload payload_;
  SetSizes set_sizes_;
  std::vector<io::PinnedBuffer> pinned_;
  std::vector<io::PageAlignedBuffer> buffers_;
  std::vector<std::span<std::byte>> layer_gradients_;
  std::vector<std::span<std::byte>> bounces_;
  std::span<double> block_sums_;
  std::span<std::byte> carry_;
  std::vector<std::span<std::byte>> sparse_buffers_;
  std::optional<CompressMemory> compress_;
  io::PageAlignedBuffer gradient_store_;
  IdVector<SubgroupId, std::span<std::byte>> gradients_;  // parts of it
};

}  // namespace sluice::offload
