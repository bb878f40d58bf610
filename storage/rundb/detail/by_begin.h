#pragma once
// Spans in order of time.
//
// Thread contract: a free function.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "storage/rundb/rows.h"

namespace sluice::rundb::detail {

// By begin, then by id, in which they come. SQLite would carry all columns through its sort.
inline std::vector<SpanRow> by_begin(std::vector<SpanRow> rows) {
  if (std::ranges::is_sorted(rows, {}, &SpanRow::ts)) return rows;
  std::vector<std::pair<TimeNs, std::size_t>> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) order[i] = {rows[i].ts, i};
  std::ranges::sort(order);
  std::vector<SpanRow> sorted;
  sorted.reserve(rows.size());
  for (const auto& [ts, i] : order) sorted.push_back(rows[i]);
  return sorted;
}

}  // namespace sluice::rundb::detail
