#pragma once
// Under which id a span was written, by its place in its ring: a flow names its two spans by ring
// and number, of the same step or the one before it.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <vector>

#include "profiler/record/record.h"

namespace sluice::collect {

class SpanIds {
 public:
  // `count` records were drained from this ring; the number of the first of them.
  std::uint64_t note_drained(std::uint32_t ring, std::uint64_t count);
  void note_written(record::SpanRef span, std::int64_t id);
  // 0: it was dropped, or drained too long ago.
  std::int64_t id_of(record::SpanRef span) const;

 private:
  struct RingIds {
    std::uint64_t drained_count = 0;     // since the start
    std::vector<std::int64_t> ids = {};  // of record n at n % kRememberedIds; 0: no span
  };
  static constexpr std::uint64_t kRememberedIds = 1 << 17;

  std::vector<RingIds> rings_;
};

}  // namespace sluice::collect
