#include "cli/runs_text.h"

#include <algorithm>
#include <array>

#include "base/escaped_text.h"
#include "cli/paint.h"
#include "cli/terminal.h"
#include "profiler/runs/table_text.h"

namespace sluice::cli {
namespace {

using runs::Column;
using runs::RunFigures;
using runs::Unit;

constexpr std::size_t kGap = 2;
constexpr std::size_t kLongestCell = 44;
constexpr std::size_t kNarrowCell = 18;  // on fewer than kWide columns
constexpr int kWide = 72;

// Remarks below the table say these.
constexpr std::array<std::string_view, 3> kBelowTheTable = {"marks", "left_out", "error"};
// From the most important one on; settings that differ come behind these, all others last.
constexpr std::array<std::string_view, 7> kKept = {"path",      "state",      "step_count", "loss",
                                                   "step_time", "validation", "noise"};

std::size_t importance_of(const Column& column) {
  const auto kept = std::ranges::find(kKept, column.key);
  if (!column.is_setting && kept != kKept.end())
    return static_cast<std::size_t>(kept - kKept.begin());
  return column.is_setting ? kKept.size() : kKept.size() + 1;
}

bool is_text(const Column& column) { return column.unit == Unit::text; }

struct Made {
  Column column;
  std::vector<std::string> cells;
  std::size_t width = 0;
};

Made made_of(const Column& column, std::span<const RunFigures> runs,
             const std::vector<std::string>& names, std::size_t columns_max) {
  Made made{.column = column, .cells = {}, .width = columns_of(column.title)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool is_name = column.key == "path" && !column.is_setting;
    std::string text = is_name ? names[i] : text_of(column, cell_of(runs[i], column));
    text = cut_to(escaped_for_terminal(text), columns_max, is_name ? Kept::end : Kept::begin);
    made.width = std::max(made.width, columns_of(text));
    made.cells.push_back(std::move(text));
  }
  return made;
}

std::size_t width_of(const std::vector<Made>& table) {
  std::size_t width = 0;
  for (const Made& made : table) width += made.width + (width > 0 ? kGap : 0);
  return width;
}

std::string aligned(const Made& made, const std::string& text, bool is_last) {
  const std::string room(made.width - std::min(made.width, columns_of(text)), ' ');
  if (!is_text(made.column)) return room + text;
  return is_last ? text : text + room;
}

std::string line_of(const std::vector<Made>& table, std::size_t run, bool is_head) {
  std::string line;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (i > 0) line += std::string(kGap, ' ');
    const std::string& text = is_head ? table[i].column.title : table[i].cells[run];
    line += aligned(table[i], text, i + 1 == table.size());
  }
  return line + "\n";
}

// The last of those that are as important.
std::vector<Made>::iterator least_important(std::vector<Made>& table) {
  auto least = table.begin();
  for (auto made = table.begin(); made != table.end(); ++made) {
    if (importance_of(made->column) >= importance_of(least->column)) least = made;
  }
  return least;
}

}  // namespace

std::vector<Column> columns_of_table(std::span<const RunFigures> runs) {
  std::vector<Column> columns = runs::shown_columns(runs);
  std::erase_if(columns, [](const Column& column) {
    return !column.is_setting &&
           std::ranges::find(kBelowTheTable, column.key) != kBelowTheTable.end();
  });
  return columns;
}

RunsText runs_text(std::span<const RunFigures> runs, std::span<const Column> columns,
                   int terminal_columns, Room room) {
  RunsText text;
  const std::vector<std::string> names = runs::short_names(runs);
  const std::size_t columns_max = terminal_columns >= kWide ? kLongestCell : kNarrowCell;
  std::vector<Made> table;
  for (const Column& column : columns) table.push_back(made_of(column, runs, names, columns_max));
  const auto has_room = static_cast<std::size_t>(terminal_columns);
  while (room == Room::of_the_terminal && table.size() > 1 && width_of(table) > has_room) {
    const auto least = least_important(table);
    text.left_out.insert(text.left_out.begin(), least->column.key);
    table.erase(least);
  }
  text.table = line_of(table, 0, true);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool is_amiss =
        !runs[i].error.empty() || runs[i].state == runs::RunState::killed || !runs[i].marks.empty();
    const std::string line = line_of(table, i, false);
    text.table += is_amiss ? amber(line) : line;
  }
  return text;
}

std::string remarks_text(std::span<const RunFigures> runs, int terminal_columns) {
  const std::vector<std::string> names = runs::short_names(runs);
  std::string text;
  const auto lines_of = [&](const std::string& remark) {
    return wrapped(escaped_for_terminal(remark), terminal_columns, "  ");
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const std::string& mark : runs[i].marks) text += amber(lines_of(names[i] + ": " + mark));
    for (const std::string& left : runs[i].left_out) text += lines_of(names[i] + ": no " + left);
    if (!runs[i].error.empty()) text += amber(lines_of(names[i] + ": " + runs[i].error));
  }
  return text;
}

}  // namespace sluice::cli
