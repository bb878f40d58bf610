#include "gui/data/run_table_feed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "base/escaped_text.h"
#include "base/small_letters.h"
#include "gui/data/run_path.h"
#include "profiler/runs/run_search.h"
#include "profiler/runs/table_text.h"

namespace sluice::gui {
namespace {

constexpr TimeNs kBudgetOfRun = 2'000'000'000;
constexpr TimeNs kBudgetOfCurves = 5'000'000'000;

RunRow row_of(const runs::RunFigures& run, const std::string& name,
              const std::vector<runs::Column>& columns) {
  RunRow row;
  row.path = run.path;
  row.name = escaped_for_terminal(name);
  row.is_amiss = !run.error.empty() || !run.marks.empty() || run.state == runs::RunState::killed;
  row.has_steps = run.error.empty() && run.step_count > 0;
  for (const runs::Column& column : columns) {
    row.cells.push_back(cell_of(run, column));
    const bool is_name = column.key == "path" && !column.is_setting;
    row.texts.push_back(escaped_for_terminal(is_name ? name : text_of(column, row.cells.back())));
    row.words += row.texts.back() + ' ';
  }
  row.words = small_letters(row.words + run.path);
  std::vector<std::string> remarks = run.marks;
  for (const std::string& left : run.left_out) remarks.push_back("no " + left);
  if (!run.error.empty()) remarks.push_back(run.error);
  row.remarks = escaped_for_terminal(fmt::format("{}", fmt::join(remarks, "\n")), LineFeeds::keep);
  return row;
}

}  // namespace

RunTable read_run_table(const std::string& folder, const std::vector<std::string>& opened_before) {
  RunTable table;
  std::vector<std::string> places;
  std::error_code error;
  if (std::filesystem::exists(folder, error)) places.push_back(absolute_path(folder));
  for (const std::string& path : opened_before) {
    if (std::filesystem::exists(path, error)) places.push_back(path);
  }
  const auto found = runs::runs_of(places);
  if (!found.ok() || found->paths.empty()) {
    table.problem = found.ok() ? "No run lies below " + folder + ", and none was opened before."
                               : found.error().message();
    return table;
  }
  table.is_whole = found->is_whole;
  std::vector<runs::RunFigures> figures;
  for (const std::string& path : found->paths)
    figures.push_back(runs::read_figures(path, {.stops = runs::stops_after(kBudgetOfRun)}));
  const Status sorted = runs::sort_runs(figures, "-when");
  if (!sorted.ok()) table.problem = sorted.error().message();
  table.columns = runs::shown_columns(figures);
  const std::vector<std::string> names = runs::short_names(figures);
  for (std::size_t i = 0; i < figures.size(); ++i)
    table.rows.push_back(row_of(figures[i], names[i], table.columns));
  return table;
}

std::vector<OverlaidRun> read_overlaid(const std::vector<std::string>& paths) {
  std::vector<OverlaidRun> overlaid;
  for (const std::string& path : paths) {
    OverlaidRun& run = overlaid.emplace_back();
    auto curves = runs::read_curves(path, runs::stops_after(kBudgetOfCurves));
    if (curves.ok()) {
      run.curves = std::move(*curves);
    } else {
      run.curves.path = path;
      run.problem = curves.error().message();
    }
  }
  return overlaid;
}

}  // namespace sluice::gui
