#pragma once
// The tensors that one layer of one micro-batch keeps, as blocks of bytes that can leave memory and
// come back. The tensors stay as they are, without their bytes meanwhile: a storage's memory is
// taken from under them and put back, so whoever holds a tensor of it need not know.
//
// A block is a storage, so views of one are one. Small storages are gathered in a block of their
// own, since a transfer needs whole pages. Where the storages are a device's, the blocks lie in
// pinned memory of the host, and copy_out() and copy_in() are between the two.
//
// Thread contract: one call at a time, from any thread. libtorch's exceptions go through.

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/compute_device.h"
#include "core/model/kept_blocks.h"
#include "core/model/torch/staging_memory.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

// Whose storages are noted, and whose not.
struct BlockMemory {
  at::Device device = at::kCPU;
  StagingMemory* staging = nullptr;       // beside a device
  std::span<const std::byte> parameters;  // in host memory
  // Storages that are no layer's own: of parameters on the device, and of constants.
  std::vector<const void*> not_the_layers = {};
};

class SavedBlocks {
 public:
  // `memory` outlives this.
  explicit SavedBlocks(const BlockMemory& memory) : memory_(&memory) {}

  // Notes the storage of a tensor that backward needs. Left out are one that is noted already,
  // parameters, and memory that is not libtorch's.
  void note(const at::Tensor& tensor);
  bool has(const at::Tensor& tensor) const;

  // KeptBlocks's, of this layer and micro-batch.
  Result<std::span<const KeptBlock>> kept();
  Status release();
  Status release_device();
  Result<std::span<const KeptBlock>> make_room();
  Status restore();
  void forget();

  // A part of the blocks between a device and host memory, on the current stream; what comes in is
  // used on `user` too.
  void copy_out(BytePart part) const;
  void copy_in(BytePart part, const c10::Stream& user);

 private:
  struct Storage {
    c10::Storage storage;
    at::Tensor tensor;  // of the storage; its version counts changes in place
    std::int64_t version = 0;
    std::int64_t size_bytes = 0;
  };
  bool is_on_device() const { return !memory_->device.is_cpu(); }
  bool is_left_out(const c10::Storage& storage) const;
  bool is_small(const Storage& one) const;
  Status check_unchanged() const;
  Status take_room();
  void give_room_back();
  void list_blocks();
  // Each storage, where it lies among the blocks: `use(storage, first byte, its bytes there)`.
  template <typename Use>
  void for_each_place(const Use& use) const;

  const BlockMemory* memory_;
  std::vector<Storage> storages_;
  std::int64_t small_bytes_ = 0;
  io::PageAlignedBuffer gathered_;  // the small ones, in host memory
  io::PinnedBuffer staged_;         // all of them, of a device
  std::vector<KeptBlock> blocks_;
};

}  // namespace sluice::model
