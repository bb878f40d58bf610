#pragma once
// Rows of the processor samples (storage/rundb/rows.h) put together.
//
// Thread contract: free function.

#include <iterator>
#include <utility>

#include "storage/rundb/rows.h"

namespace sluice::rundb {

// All of `rows` behind those that are there.
inline void move_behind(SampleRows& there, SampleRows&& rows) {
  const auto move = [](auto& to, auto& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move(there.threads, rows.threads);
  move(there.functions, rows.functions);
  move(there.calls, rows.calls);
  move(there.samples, rows.samples);
  move(there.times, rows.times);
}

}  // namespace sluice::rundb
