#include "profiler/runs/run_table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/nearest.h"

namespace sluice::runs {
namespace {

using rundb::Cell;

Cell number(double value) { return std::isnan(value) ? Cell() : Cell(value); }
Cell text(std::string value) { return value.empty() ? Cell() : Cell(std::move(value)); }

Cell bytes(const RunFigures& run, double StepBytes::* figure) {
  return run.bytes ? Cell((*run.bytes).*figure) : Cell();
}

// A run that could not be read has no counts.
Cell count(const RunFigures& run, std::int64_t value) {
  return run.error.empty() ? Cell(value) : Cell();
}

std::string joined(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, "; "));
}

struct Figure {
  Column column;
  Cell (*of)(const RunFigures&);
};

const std::vector<Figure>& figures() {
  static const std::vector<Figure> kFigures = {
      {{"path", "run", Unit::text}, [](const RunFigures& run) { return text(run.path); }},
      {{"name", "name", Unit::text}, [](const RunFigures& run) { return text(run.name); }},
      {{"when", "when (UTC)", Unit::text}, [](const RunFigures& run) { return text(run.started); }},
      {{"state", "state", Unit::text},
       [](const RunFigures& run) { return text(state_word(run.state)); }},
      {{"step_count", "steps", Unit::count},
       [](const RunFigures& run) { return count(run, run.step_count); }},
      {{"loss", "loss", Unit::loss}, [](const RunFigures& run) { return number(run.loss); }},
      {{"validation", "validation", Unit::loss},
       [](const RunFigures& run) { return number(run.validation_loss); }},
      {{"step_time", "a step", Unit::seconds},
       [](const RunFigures& run) { return number(run.steady.median_s); }},
      {{"noise", "noise", Unit::seconds},
       [](const RunFigures& run) { return number(run.steady.noise_s); }},
      {{"drive_read", "drives read", Unit::bytes},
       [](const RunFigures& run) { return bytes(run, &StepBytes::drive_read); }},
      {{"drive_write", "written", Unit::bytes},
       [](const RunFigures& run) { return bytes(run, &StepBytes::drive_write); }},
      {{"link_read", "link read", Unit::bytes},
       [](const RunFigures& run) { return bytes(run, &StepBytes::link_read); }},
      {{"link_write", "link written", Unit::bytes},
       [](const RunFigures& run) { return bytes(run, &StepBytes::link_write); }},
      {{"device_count", "drives", Unit::count},
       [](const RunFigures& run) {
         return count(run, static_cast<std::int64_t>(run.device_count));
       }},
      {{"rank_count", "ranks", Unit::count},
       [](const RunFigures& run) { return count(run, run.rank_count); }},
      {{"mode", "mode", Unit::text}, [](const RunFigures& run) { return text(run.mode); }},
      {{"marks", "marks", Unit::text},
       [](const RunFigures& run) { return text(joined(run.marks)); }},
      {{"left_out", "left out", Unit::text},
       [](const RunFigures& run) { return text(joined(run.left_out)); }},
      {{"error", "error", Unit::text}, [](const RunFigures& run) { return text(run.error); }},
  };
  return kFigures;
}

std::optional<double> number_of(std::string_view words) {
  double value = 0;
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
  if (error != std::errc() || end != words.data() + words.size() || std::isnan(value))
    return std::nullopt;
  return value;
}

// A setting is a text in the record; one that is a number is compared as a number.
std::optional<double> number_in(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  const auto* words = std::get_if<std::string>(&cell);
  return words == nullptr ? std::nullopt : number_of(*words);
}

bool is_none(const Cell& cell) { return std::holds_alternative<std::monostate>(cell); }

std::string words_in(const Cell& cell) {
  const auto* words = std::get_if<std::string>(&cell);
  return words == nullptr ? "" : *words;
}

constexpr std::size_t kSettingsShown = 60;  // a run of ours has about a hundred in all
constexpr std::array<std::string_view, 4> kIfTheyDiffer = {"name", "mode", "device_count",
                                                           "rank_count"};
constexpr std::array<std::string_view, 4> kBehindSettings = {"mode", "marks", "left_out", "error"};

bool tells_nothing(const Column& column, std::span<const RunFigures> runs) {
  if (runs.size() < 2 || std::ranges::find(kIfTheyDiffer, column.key) == kIfTheyDiffer.end())
    return false;
  std::optional<Cell> first;
  for (const RunFigures& run : runs) {
    if (!run.error.empty()) continue;
    const Cell cell = cell_of(run, column);
    if (first && *first != cell) return false;
    first = cell;
  }
  return true;
}

constexpr std::array<std::string_view, 7> kOperators = {"!=", "<=", ">=", "=", "<", ">", "~"};

struct Condition {
  Column column;
  std::string_view op;
  std::string words;
  Cell value;  // the same, as a cell of that column
};

Result<Cell> value_of(const Column& column, const std::string& words) {
  if (const auto plain = number_of(words)) return Cell(*plain);
  if (column.unit == Unit::seconds) {
    ASSIGN_OR_RETURN(const TimeNs ns, parse_duration(words));
    return Cell(static_cast<double>(ns) / 1e9);
  }
  if (column.unit == Unit::bytes) {
    ASSIGN_OR_RETURN(const std::int64_t size, parse_bytes(words));
    return Cell(size);
  }
  if (column.unit == Unit::text) return Cell(words);
  return make_error(ErrorCode::config, "'{}' is no number", words);
}

Result<Condition> condition_of(const std::string& text, std::span<const Column> columns) {
  const std::size_t at = text.find_first_of("!<>=~");
  const auto op = std::ranges::find_if(kOperators, [&](std::string_view one) {
    return at != std::string::npos && std::string_view(text).substr(at).starts_with(one);
  });
  const bool has_value = op != kOperators.end() && at + op->size() < text.size();
  const bool may_be_empty = op != kOperators.end() && (*op == "=" || *op == "!=");
  if (at == 0 || (!has_value && !may_be_empty)) {
    return make_error(
        ErrorCode::config,
        "'{}' is no condition: KEY=VALUE, or with !=, <, <=, >, >= or ~ in place of =", text);
  }
  Condition condition;
  ASSIGN_OR_RETURN(condition.column, column_named(columns, text.substr(0, at)));
  condition.op = *op;
  condition.words = text.substr(at + op->size());
  if (condition.op == "~" || !has_value) return condition;
  auto value = value_of(condition.column, condition.words);
  if (!value.ok()) return value.error().with_context(text);
  condition.value = std::move(*value);
  return condition;
}

// "KEY=" asks for runs without the figure, "KEY!=" for those with it.
bool holds(const Condition& condition, const RunFigures& run) {
  const Cell cell = cell_of(run, condition.column);
  if (condition.words.empty()) return is_none(cell) == (condition.op == "=");
  if (is_none(cell)) return condition.op == "!=";
  if (condition.op == "~") return words_in(cell).find(condition.words) != std::string::npos;
  const int order = compare_cells(cell, condition.value);
  if (condition.op == "=") return order == 0;
  if (condition.op == "!=") return order != 0;
  if (condition.op == "<") return order < 0;
  if (condition.op == "<=") return order <= 0;
  return condition.op == ">" ? order > 0 : order >= 0;
}

}  // namespace

int compare_cells(const Cell& a, const Cell& b) {
  const std::optional<double> number_a = number_in(a);
  const std::optional<double> number_b = number_in(b);
  if (number_a && number_b) return *number_a < *number_b ? -1 : *number_a > *number_b ? 1 : 0;
  if (number_a || number_b) return number_a ? -1 : 1;
  const int order = words_in(a).compare(words_in(b));
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

const std::vector<Column>& figure_columns() {
  static const std::vector<Column> kColumns = [] {
    std::vector<Column> columns;
    for (const Figure& figure : figures()) columns.push_back(figure.column);
    return columns;
  }();
  return kColumns;
}

std::vector<Column> differing_settings(std::span<const RunFigures> runs) {
  std::set<std::string> keys;
  for (const RunFigures& run : runs) {
    for (const auto& [key, value] : run.settings) keys.insert(key);
  }
  std::vector<Column> columns;
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const RunFigures& run : runs) {
      if (run.settings.empty()) continue;  // nobody knows how it was set
      const auto value = run.settings.find(key);
      values.insert(value == run.settings.end() ? std::string() : value->second);
    }
    if (values.size() > 1) columns.push_back({key, key, Unit::text, true});
  }
  return columns;
}

std::vector<Column> shown_columns(std::span<const RunFigures> runs) {
  std::vector<Column> columns;
  std::vector<Column> behind_settings;
  for (const Column& column : figure_columns()) {
    const bool has_any = std::ranges::any_of(
        runs, [&column](const RunFigures& run) { return !is_none(cell_of(run, column)); });
    if (!has_any || tells_nothing(column, runs)) continue;
    const bool is_behind = std::ranges::find(kBehindSettings, column.key) != kBehindSettings.end();
    (is_behind ? behind_settings : columns).push_back(column);
  }
  std::vector<Column> settings = differing_settings(runs);
  if (settings.size() > kSettingsShown) settings.resize(kSettingsShown);
  columns.insert(columns.end(), settings.begin(), settings.end());
  columns.insert(columns.end(), behind_settings.begin(), behind_settings.end());
  return columns;
}

std::vector<Column> all_columns(std::span<const RunFigures> runs) {
  std::vector<Column> columns = figure_columns();
  std::set<std::string> keys;
  for (const RunFigures& run : runs) {
    for (const auto& [key, value] : run.settings) keys.insert(key);
  }
  for (const std::string& key : keys) {
    columns.push_back({key, key, Unit::text, true});
  }
  return columns;
}

Cell cell_of(const RunFigures& run, const Column& column) {
  if (column.is_setting) {
    const auto value = run.settings.find(column.key);
    return value == run.settings.end() ? Cell() : text(value->second);
  }
  for (const Figure& figure : figures()) {
    if (figure.column.key == column.key) return figure.of(run);
  }
  return {};
}

Result<Column> column_named(std::span<const Column> columns, const std::string& key) {
  const auto found = std::ranges::find(columns, key, &Column::key);
  if (found != columns.end()) return *found;
  std::vector<std::string> keys;
  std::vector<std::string> keys_of_figures;
  for (const Column& column : columns) {
    keys.push_back(column.key);
    if (!column.is_setting) keys_of_figures.push_back(column.key);
  }
  return make_error(ErrorCode::config,
                    "there is no column '{}'{}; there are {}, and the keys of settings", key,
                    did_you_mean(key, keys), fmt::join(keys_of_figures, ", "));
}

Status sort_runs(std::vector<RunFigures>& runs, const std::string& key) {
  const bool is_down = key.starts_with('-');
  ASSIGN_OR_RETURN(const Column column,
                   column_named(all_columns(runs), key.substr(is_down ? 1 : 0)));
  std::ranges::stable_sort(runs, [&](const RunFigures& a, const RunFigures& b) {
    const Cell cell_a = cell_of(a, column);
    const Cell cell_b = cell_of(b, column);
    if (is_none(cell_a) || is_none(cell_b)) return !is_none(cell_a) && is_none(cell_b);
    return is_down ? compare_cells(cell_a, cell_b) > 0 : compare_cells(cell_a, cell_b) < 0;
  });
  return ok_status();
}

Status keep_runs(std::vector<RunFigures>& runs, std::span<const std::string> conditions) {
  const std::vector<Column> columns = all_columns(runs);
  for (const std::string& text : conditions) {
    ASSIGN_OR_RETURN(const Condition condition, condition_of(text, columns));
    std::erase_if(runs, [&](const RunFigures& run) { return !holds(condition, run); });
  }
  return ok_status();
}

}  // namespace sluice::runs
