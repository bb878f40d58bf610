#pragma once
// A subgroup's initial state on its way into split arrays (base/state_format.h), some blocks at a
// time, in one bounce buffer: the values in fp32, and behind them a part for each stored array, in
// which whole pages gather until they are written.
//
// Thread contract: make() on a worker while the schedule's thread awaits it; the rest on the
// schedule's thread.

#include <array>
#include <cstdint>
#include <span>

#include "base/state_codec.h"
#include "core/csd/drive.h"
#include "core/csd/update_task.h"
#include "core/offload/fill_initial.h"
#include "storage/state/checksum.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

class SplitPieces {
 public:
  // `bounce`: empty without payload, else of `bounce_bytes`.
  SplitPieces(const state::Geometry& geometry, std::span<std::byte> bounce,
              std::int64_t bounce_bytes);

  // As many elements as are made at once, whole blocks.
  std::int64_t element_count() const { return element_count_; }
  // Fills and encodes the next elements; rounds to the nearest, as a conversion does. Returns the
  // bytes of the first array, the parameters.
  Result<std::span<const std::byte>> make(const FillInitial& fill, std::int64_t flat_first,
                                          std::int64_t count);
  // They are made, also without payload.
  void on_made(std::int64_t count);
  // What of the array can be written: from `offset_bytes` of the array on; at the subgroup's end
  // the last page, too.
  csd::HostTransfer pages(std::int32_t variable, bool is_last);
  void on_written(std::int32_t variable, const csd::HostTransfer& transfer);
  // Those of all that was made.
  csd::UpdatedChecksums checksums() const;

 private:
  struct Part {
    std::int64_t begin_bytes = 0;   // in the bounce buffer
    std::int64_t filled_bytes = 0;  // gathered there
    std::int64_t written_bytes = 0;
    state::Checksummer checksummer;
  };

  std::span<std::byte> bytes_of(const Part& part) const;
  StoredSpan stored(std::int64_t count);

  const state::Geometry& geometry_;
  std::span<std::byte> bounce_;
  std::int64_t element_count_ = 0;
  std::array<Part, kMaxStoredArrays> parts_;
};

}  // namespace sluice::offload
