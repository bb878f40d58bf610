#include "profiler/report/runs_report.h"

#include <cmath>

#include "profiler/report/detail/curves.h"
#include "profiler/report/detail/page_frame.h"
#include "profiler/report/detail/run_json.h"
#include "profiler/report/page_text.h"
#include "profiler/runs/run_colours.h"
#include "profiler/runs/run_curves.h"
#include "profiler/runs/run_table.h"
#include "profiler/runs/table_text.h"

namespace sluice::report {
namespace {

using Json = nlohmann::ordered_json;
using runs::Column;
using runs::RunFigures;

constexpr TimeNs kBudgetOfCurves = 2'000'000'000;  // of a run
// A run has up to four points of each: eight times this is a page of some megabytes.
constexpr std::size_t kBucketsOfRun = 300;

Json json_of(const rundb::Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* real = std::get_if<double>(&cell))
    return std::isfinite(*real) ? Json(*real) : Json(nullptr);
  if (const auto* words = std::get_if<std::string>(&cell)) return *words;
  return nullptr;
}

Json columns_json(std::span<const Column> columns) {
  Json all = Json::array();
  for (const Column& column : columns) {
    all.push_back({{"key", column.key},
                   {"title", column.title},
                   {"is_text", column.unit == runs::Unit::text},
                   {"is_setting", column.is_setting}});
  }
  return all;
}

// The path, and what is amiss.
std::string remarks_of(const RunFigures& run) {
  std::string text = run.path;
  for (const std::string& mark : run.marks) text += "\n" + mark;
  for (const std::string& left : run.left_out) text += "\nno " + left;
  return run.error.empty() ? text : text + "\n" + run.error;
}

// What is sorted by, and what is shown.
Json cells_json(const RunFigures& run, std::span<const Column> columns) {
  Json cells = Json::array();
  for (const Column& column : columns) {
    const rundb::Cell cell = cell_of(run, column);
    cells.push_back({json_of(cell), runs::text_of(column, cell)});
  }
  return cells;
}

Json run_colours_json() {
  Json all = Json::array();
  for (const ThemedColour& colour : runs::kRunColours)
    all.push_back({{"dark", colour_text(colour.dark)}, {"light", colour_text(colour.light)}});
  return all;
}

// Null: there are none to be drawn, or they cannot be read in time.
Json curves_of(const RunFigures& run) {
  if (!run.error.empty() || run.step_count == 0) return nullptr;
  const auto curves = runs::read_curves(run.path, runs::stops_after(kBudgetOfCurves));
  if (!curves.ok()) return nullptr;
  Json json = detail::curves_json(curves->steps, curves->validations, kBucketsOfRun);
  json.erase("skipped");
  return json;
}

}  // namespace

Result<std::string> runs_report(std::span<const RunFigures> runs) {
  const std::vector<Column> columns = runs::shown_columns(runs);
  const std::vector<std::string> names = runs::short_names(runs);
  Json rows = Json::array();
  std::size_t curves_count = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json curves = curves_count < kCurvesMax ? curves_of(runs[i]) : Json(nullptr);
    if (!curves.is_null()) curves_count += 1;
    rows.push_back({{"name", names[i]},
                    {"remarks", remarks_of(runs[i])},
                    {"cells", cells_json(runs[i], columns)},
                    {"is_amiss", !runs[i].error.empty() || !runs[i].marks.empty() ||
                                     runs[i].state == runs::RunState::killed},
                    {"curves", std::move(curves)}});
  }
  Json data = {{"columns", columns_json(columns)},   {"rows", std::move(rows)},
               {"overlaid_max", runs::kOverlaidMax}, {"curves_max", kCurvesMax},
               {"changes", Json::array()},           {"colours", detail::colours_json({})},
               {"run_colours", run_colours_json()}};
  return detail::page_of(
      {.kind = "Sluice", .body = kRunsHtml, .style = kRunsCss, .words = {}, .script = kRunsJs},
      fmt::format("{} runs", runs.size()), data);
}

}  // namespace sluice::report
