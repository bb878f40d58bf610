#pragma once
// Reads any elements of the newest committed state, wherever their subgroups lie. Checksums are
// those of whole arrays, so whoever wants them checked calls digest_state() before.
//
// Thread contract: one thread; not beside a run that has the state open for writing.

#include <functional>
#include <span>

#include "storage/io/page_aligned_buffer.h"
#include "storage/state/state_store.h"

namespace sluice::state {

class StateReader {
 public:
  // The store outlives it. Takes one buffer, of at most 8 MiB.
  static Result<StateReader> make(StateStore& store);

  // Hands elements [first, first + count) of a variable's flat array to `take`, piece by piece in
  // order. Errors: those of the drives and of `take`.
  using Take = std::function<Status(std::span<const float>)>;
  Status read(std::int32_t variable, std::int64_t first, std::int64_t count, const Take& take);

 private:
  StateReader(StateStore& store, io::PageAlignedBuffer buffer)
      : store_(&store), buffer_(std::move(buffer)) {}
  Status read_from(const io::File& file, std::int64_t offset_bytes, std::int64_t count,
                   const Take& take);

  StateStore* store_;
  io::PageAlignedBuffer buffer_;
};

}  // namespace sluice::state
