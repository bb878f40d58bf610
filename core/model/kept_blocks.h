#pragma once
// The seam through which what a layer keeps for its backward leaves memory and comes back: blocks
// of bytes. Who moves them, when and where to is not the model's business (core/activation).
//
// Calls for one layer and micro-batch: after forward, kept(); then either release(), make_room()
// and restore() before backward, or none of them (the bytes never left); after backward, and once
// nobody reads the blocks any more, forget(). Where a device with memory of its own computes, the
// blocks shown are the host's: after kept() ComputeDevice::blocks_out() fills them, and after
// make_room() blocks_in() takes them, before restore(). There, release_device() in place of
// release() leaves the bytes in the blocks: blocks_in() and restore() follow. A step that is given
// up calls nothing more: the next set_batch() of the micro-batch forgets all of it.
//
// Thread contract: one call at a time for one layer and micro-batch, from any thread, also beside
// the forward and backward of others. Errors: ErrorCode::internal, naming the layer, if a kept
// value was changed in place meanwhile; ErrorCode::memory.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"

namespace sluice::model {

// Memory fit for a transfer: it begins on a page, and behind `size_bytes` it is the model's to the
// end of the page.
struct KeptBlock {
  std::byte* data = nullptr;
  std::int64_t size_bytes = 0;
};

class KeptBlocks {
 public:
  virtual ~KeptBlocks() = default;

  // The tensors that backward needs and nothing else holds, in the same order and sizes in every
  // step. Bytes that are kept twice are in one block; parameters are in none. The memory stays as
  // it is, and there, until release() or forget().
  virtual Result<std::span<const KeptBlock>> kept(LayerId layer, int micro_step) = 0;
  // The bytes are elsewhere: their memory is free.
  virtual Status release(LayerId layer, int micro_step) = 0;
  // The bytes are in the blocks: the device's memory is free. Only where a device computes.
  virtual Status release_device(LayerId layer, int micro_step) = 0;
  // Memory for the same blocks.
  virtual Result<std::span<const KeptBlock>> make_room(LayerId layer, int micro_step) = 0;
  // The bytes are back in it.
  virtual Status restore(LayerId layer, int micro_step) = 0;
  virtual void forget(LayerId layer, int micro_step) = 0;
};

}  // namespace sluice::model
