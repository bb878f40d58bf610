#pragma once
// The facts of a correlation id, by which CUPTI joins a call of the CUDA API with what the GPU did
// for it: when the call began, and the layer and step that the calling thread was in. A call may be
// told of long before what it launched has run, so an id is remembered for several flushes, and no
// longer: the table is bounded, and what is forgotten for lack of room is counted.
//
// Thread contract: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "base/units.h"

namespace sluice::cupti {

struct CorrelationOptions {
  std::size_t count_max = std::size_t{1} << 18;
  int flush_count = 32;
};

struct Correlation {
  TimeNs call_ts = -1;  // of the run's clock; -1: not told
  std::int32_t step = -1;
  std::int16_t layer = -1;
};

class Correlations {
 public:
  explicit Correlations(const CorrelationOptions& options) : options_(options) {
    generations_.emplace_back();
  }

  // The entry of this id, made if it is new; null where there is no room for it.
  Correlation* find_or_add(std::uint32_t id);
  const Correlation* find(std::uint32_t id) const;
  // Forgets what was added `flush_count` flushes ago.
  void end_flush();

  std::size_t count() const { return by_id_.size(); }
  // Forgotten for lack of room, and never taken in.
  std::int64_t lost_count() const { return lost_count_; }

 private:
  void forget_oldest();

  const CorrelationOptions options_;
  std::unordered_map<std::uint32_t, Correlation> by_id_;
  std::deque<std::vector<std::uint32_t>> generations_;  // ids by the flush that brought them
  std::int64_t lost_count_ = 0;
};

}  // namespace sluice::cupti
