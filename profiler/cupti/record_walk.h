#pragma once
// Record by record through a buffer, by CUPTI's own iterator.
//
// The iterator alone is not enough: it says "no more records" also where the last one is cut, and
// it reads the kind of a record of which fewer than four bytes are there. So how long each kind of
// record is is found out beforehand, by asking the iterator how many bytes it wants, and the
// iterator is asked only where a record can begin, and believed only where it agrees. Nothing
// behind the valid bytes is read.
//
// Thread contract: create() and walk() from any thread.

#include <cupti.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/status.h"

namespace sluice::cupti {

using NextRecord = decltype(&::cuptiActivityGetNextRecord);

enum class WalkEnd : std::uint8_t {
  whole,      // every byte belonged to a record
  truncated,  // a record of a known kind is longer than what is left
  damaged,    // what begins at the offset is no record
};

struct WalkResult {
  WalkEnd end;
  std::size_t offset;  // behind the last whole record
};

class RecordWalk {
 public:
  // Refuses an iterator whose records are shorter than the structs they are read as: a libcupti
  // older than the headers.
  static Result<RecordWalk> create(NextRecord next_record);

  // 0: the iterator does not know the kind.
  std::size_t record_bytes(std::uint32_t kind) const {
    return kind < record_bytes_.size() ? record_bytes_[kind] : 0;
  }

  // visit(kind, const std::uint8_t* record) for each whole record.
  template <typename Visit>
  WalkResult walk(std::uint8_t* buffer, std::size_t valid_bytes, Visit&& visit) const {
    CUpti_Activity* record = nullptr;
    std::size_t offset = 0;
    for (;;) {
      if (offset == valid_bytes) return {WalkEnd::whole, offset};
      const Step step = next(buffer, valid_bytes, offset, record);
      if (step.bytes == 0) return {step.end, offset};
      visit(step.kind, buffer + offset);
      offset += step.bytes;
    }
  }

 private:
  struct Step {
    std::uint32_t kind;
    std::size_t bytes;  // 0: no record here, because of `end`
    WalkEnd end;
  };

  // More than CUPTI has: kinds of later versions, too.
  static constexpr std::size_t kKindCount = 256;

  explicit RecordWalk(NextRecord next_record) : next_record_(next_record) {}
  Step next(std::uint8_t* buffer, std::size_t valid_bytes, std::size_t offset,
            CUpti_Activity*& record) const;
  void probe();

  NextRecord next_record_;
  std::array<std::size_t, kKindCount> record_bytes_ = {};
};

}  // namespace sluice::cupti
