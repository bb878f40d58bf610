#pragma once
// Many runs as one table: columns of figures, and of the settings in which the runs differ; its
// rows sorted by a column, or chosen by conditions.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "profiler/runs/run_figures.h"
#include "profiler/runs/run_search.h"
#include "storage/rundb/rows.h"

namespace sluice::runs {

enum class Unit : std::uint8_t { text, count, loss, seconds, bytes };

struct Column {
  std::string key;    // "step_time"; of a setting its own
  std::string title;  // "a step"
  Unit unit = Unit::text;
  bool is_setting = false;
};

// Those that each table may have, in the order in which people read them.
const std::vector<Column>& figure_columns();
// Settings whose values are not the same in all runs that could be read, by key. A run without the
// setting has another value than one with it.
std::vector<Column> differing_settings(std::span<const RunFigures> runs);
// The columns that a person is shown who asked for none: figures that some run has, without those
// that tell nothing since they are the same in all (name, mode, drives, ranks); the settings that
// differ, the first sixty; what is long or rare.
std::vector<Column> shown_columns(std::span<const RunFigures> runs);
// All columns that a run of these has: figures and settings.
std::vector<Column> all_columns(std::span<const RunFigures> runs);

// The figure, or the setting; none: the run has no such one. Seconds and bytes, as the keys of
// docs/recording.md say.
rundb::Cell cell_of(const RunFigures& run, const Column& column);

// Numbers in order before texts in order, also those that are texts in the record; below 0: `a`
// comes first. What is none is no matter of this.
int compare_cells(const rundb::Cell& a, const rundb::Cell& b);

// "step_time", or "-step_time" with the largest first. ErrorCode::config: no run has such a column;
// the message names the nearest. Rows without a value come last.
Status sort_runs(std::vector<RunFigures>& runs, const std::string& key);
// The runs that hold all conditions: KEY=VALUE, !=, <, <=, >, >=, and KEY~PART of a text. Seconds
// and bytes take units ("step_time<2s"). ErrorCode::config: it is none, or no run has the column.
Status keep_runs(std::vector<RunFigures>& runs, std::span<const std::string> conditions);

// Among `columns`, by its key. ErrorCode::config, with the nearest.
Result<Column> column_named(std::span<const Column> columns, const std::string& key);

}  // namespace sluice::runs
