#pragma once
// Reads any elements of the newest committed state in fp32, wherever their subgroups lie and in
// whatever format they are stored. Checksums are those of whole arrays, so whoever wants them
// checked calls digest_state() before.
//
// Thread contract: one thread; not beside a run that has the state open for writing.

#include <functional>
#include <span>
#include <vector>

#include "base/state_codec.h"
#include "storage/io/page_aligned_buffer.h"
#include "storage/state/state_store.h"

namespace sluice::state {

class StateReader {
 public:
  // The store outlives it. Takes at most 8 MiB.
  static Result<StateReader> make(StateStore& store);

  // Hands elements [first, first + count) of a variable's flat array to `take`, piece by piece in
  // order; the variables are those of the fp32 format. Errors: those of the drives and of `take`.
  using Take = std::function<Status(std::span<const float>)>;
  Status read(std::int32_t variable, std::int64_t first, std::int64_t count, const Take& take);

 private:
  StateReader(StateStore& store, io::PageAlignedBuffer buffer)
      : store_(&store), buffer_(std::move(buffer)) {}
  Status read_from(const io::File& file, std::int64_t offset_bytes, std::int64_t count,
                   const Take& take);
  // Elements [low, high) of the subgroup.
  Status read_decoded(SubgroupId subgroup, std::int32_t variable, std::int64_t low,
                      std::int64_t high, const Take& take);
  // With those arrays that the variable is decoded from.
  Result<StoredSpan> read_stored(SubgroupId subgroup, std::int32_t variable, std::int64_t low,
                                 std::int64_t high);

  StateStore* store_;
  io::PageAlignedBuffer buffer_;  // with split state it has a part for each array
  std::vector<float> decoded_;
};

}  // namespace sluice::state
