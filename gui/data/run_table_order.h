#pragma once
// Which rows of a table of runs are shown, and in which order.
//
// Thread contract: a free function, any thread.

#include <cstddef>
#include <string>
#include <vector>

#include "gui/data/run_table_feed.h"

namespace sluice::gui {

struct RowOrder {
  std::string filter;  // words that a row has all of, in any case
  int column = -1;     // -1: as they were read
  bool is_descending = false;
  bool operator==(const RowOrder&) const = default;
};

// Indices of rows. Those without a value in the column come last, whichever way it is sorted.
std::vector<std::size_t> shown_rows(const RunTable& table, const RowOrder& order);

}  // namespace sluice::gui
