#pragma once
// One commit record as bytes. Bytes: docs/state_format.md, "Record".
// Thread contract: free functions without state.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "storage/state/commit_record.h"
#include "storage/state/detail/file_header.h"

namespace sluice::state::detail {

std::int64_t record_bytes(const Geometry& geometry);
std::int64_t area_bytes(const Geometry& geometry);  // of one record area: whole pages

struct SequencedRecord {
  std::uint64_t sequence = 0;  // 1 for the first commit
  CommitRecord record;
};

// Fills `area` (area_bytes), padding included. Allocates nothing.
void encode_record(const FileHeader& log_header, std::uint64_t sequence, const CommitRecord& record,
                   std::span<std::byte> area);

// Whether nothing was written to the area, or what was written was withdrawn.
bool is_empty_area(std::span<const std::byte> area);

// The fault of a damaged area is the whole message: the caller knows file and offset.
Result<SequencedRecord> decode_record(const FileHeader& log_header, int area_index,
                                      std::span<const std::byte> area);

}  // namespace sluice::state::detail
