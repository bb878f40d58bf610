#pragma once
// Many runs as a table, and the curves of some of them, read for the window.
//
// Thread contract: free functions that open files and take as long as reading takes; not the frame
// thread.

#include <string>
#include <vector>

#include "profiler/runs/run_curves.h"
#include "profiler/runs/run_table.h"

namespace sluice::gui {

struct RunRow {
  std::string path;
  std::string name;  // among the others: without the folders that all of them share
  bool is_amiss = false;
  bool has_steps = false;
  std::vector<rundb::Cell> cells;  // by column
  std::vector<std::string> texts;
  std::string words;  // all texts in small letters, for a filter
  std::string remarks;
};

struct RunTable {
  std::vector<runs::Column> columns;  // that some run has a value in, the run's name first
  std::vector<RunRow> rows;           // the newest first
  bool is_whole = true;
  std::string problem;  // why there is nothing
};
// Runs below `folder`, and of `opened_before` those that are still there.
RunTable read_run_table(const std::string& folder, const std::vector<std::string>& opened_before);

struct OverlaidRun {
  runs::RunCurves curves;
  std::string problem;  // why there are none
};
std::vector<OverlaidRun> read_overlaid(const std::vector<std::string>& paths);

}  // namespace sluice::gui
