#pragma once
// Values of rows that a query has read.
//
// Thread contract: free functions.

#include <cstdint>
#include <variant>

#include "storage/rundb/rows.h"

namespace sluice::report {

// -1 where the cell holds no integer.
inline std::int64_t integer(const rundb::Cell& cell) {
  const auto* value = std::get_if<std::int64_t>(&cell);
  return value == nullptr ? -1 : *value;
}

}  // namespace sluice::report
