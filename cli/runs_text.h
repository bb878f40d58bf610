#pragma once
// A table of runs as a terminal of so many columns has room for it.
//
// Thread contract: free functions.

#include <span>
#include <string>
#include <vector>

#include "profiler/runs/run_table.h"

namespace sluice::cli {

// runs::shown_columns() without those that the remarks below the table say.
std::vector<runs::Column> columns_of_table(std::span<const runs::RunFigures> runs);

struct RunsText {
  std::string table;                  // painted lines
  std::vector<std::string> left_out;  // titles of columns for which there was no room
};
// `columns`, the least important ones left out until it fits; where they were asked for none is.
enum class Room : std::uint8_t { of_the_terminal, any };
RunsText runs_text(std::span<const runs::RunFigures> runs, std::span<const runs::Column> columns,
                   int terminal_columns, Room room);

// The marks of runs, their errors, and their figures that were left out: a line each, wrapped.
std::string remarks_text(std::span<const runs::RunFigures> runs, int terminal_columns);

}  // namespace sluice::cli
