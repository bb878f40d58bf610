#pragma once
// What one layer of one micro-batch keeps, as blocks of bytes that can leave memory and come back.
// The tensors stay as they are, without their bytes meanwhile: a storage's memory is taken from
// under them and put back, so whoever holds a tensor of it need not know.
//
// A block is a storage, so views of one are one. Small storages are gathered in a block of their
// own, since a transfer needs whole pages.
//
// Thread contract: one call at a time, from any thread. libtorch's exceptions go through.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/kept_blocks.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

class SavedBlocks {
 public:
  // Notes the storage of a tensor that backward needs. Left out are one that is noted already,
  // parameters, whose memory is `parameters`, and memory that is not libtorch's.
  void note(const at::Tensor& tensor, std::span<const std::byte> parameters);
  bool has(const at::Tensor& tensor) const;

  // KeptBlocks's, of this layer and micro-batch.
  Result<std::span<const KeptBlock>> kept();
  Status release();
  Result<std::span<const KeptBlock>> make_room();
  Status restore();

 private:
  struct Storage {
    c10::Storage storage;
    at::Tensor tensor;  // of the storage; its version counts changes in place
    std::int64_t version = 0;
    std::int64_t size_bytes = 0;
  };
  bool is_small(const Storage& one) const;
  Status check_unchanged() const;
  Status gather_room();
  void list_blocks();

  std::vector<Storage> storages_;
  std::int64_t small_bytes_ = 0;
  io::PageAlignedBuffer gathered_;  // the small ones
  std::vector<KeptBlock> blocks_;
};

}  // namespace sluice::model
