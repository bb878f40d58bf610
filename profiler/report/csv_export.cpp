#include "profiler/report/csv_export.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "storage/rundb/query.h"

namespace sluice::report {
namespace {

std::string quoted_name(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

// Levels of detail and where spans stand: made for the window, of the whole run.
constexpr std::array<std::string_view, 4> kIndexTables = {"lod", "long_span", "span_batch",
                                                          "span_run"};

// As RunPart has it, in SQL.
std::string where_of(const std::string& table, const RunPart& part) {
  const std::string within = fmt::format("ts >= {} AND ts < {}", part.begin, part.end);
  const std::string steps = fmt::format("BETWEEN {} AND {}", part.first_step_id, part.last_step_id);
  const std::string spans =
      fmt::format("ts < {1} AND (ts >= {0} OR ts + dur > {0})", part.begin, part.end);
  if (table == "span") return " WHERE " + spans;
  if (table == "step") return " WHERE id " + steps;
  if (table == "verdict" || table == "validation") return " WHERE step_id " + steps;
  if (table == "counter") return " WHERE " + within;
  if (table == "knob_change")
    return fmt::format(" WHERE step_id {} OR (step_id IS NULL AND {})", steps, within);
  if (table == "flow") {
    const std::string ids = "(SELECT id FROM span WHERE " + spans + ")";
    return " WHERE to_span IN " + ids + " AND from_span IN " + ids;
  }
  return "";
}

// Nothing: the table is no file of this part.
std::optional<std::string> rows_of(const std::string& table, const RunPart& part) {
  const std::string all = "SELECT * FROM " + quoted_name(table);
  if (part.is_whole()) return all;
  if (std::ranges::find(kIndexTables, table) != kIndexTables.end()) return std::nullopt;
  return all + where_of(table, part);
}

Status export_table(rundb::Reader& reader, const rundb::TableInfo& table, const std::string& rows,
                    const std::string& folder, IfExists if_exists) {
  ASSIGN_OR_RETURN(OutputFile file,
                   OutputFile::create(folder + "/" + table.name + ".csv", if_exists));
  std::string line;
  for (const std::string& column : table.columns)
    line += (line.empty() ? "" : ",") + csv_field(column);
  RETURN_IF_ERROR(file.write(line + "\r\n"));
  RETURN_IF_ERROR(rundb::Query(reader).each_row(rows, [&](std::span<const rundb::Cell> row) {
    line.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += ',';
      line += csv_field(row[i]);
    }
    line += "\r\n";
    return file.write(line);
  }));
  return file.close();
}

// A text that a spreadsheet would compute as a formula, or whose first mark it would drop.
bool is_marked(const std::string& text) {
  if (text.empty() || std::string_view("'=+-@\t\r").find(text.front()) == std::string_view::npos)
    return false;
  // A number with its sign is one; from_chars knows no plus.
  const char* first = text.data() + (text.front() == '+' ? 1 : 0);
  if (text.starts_with("+-")) return true;
  double number = 0;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), number);
  return error != std::errc() || end != text.data() + text.size() || !std::isfinite(number);
}

}  // namespace

std::string csv_field(const rundb::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<double>(&cell)) return fmt::format("{}", *real);
  const auto* text = std::get_if<std::string>(&cell);
  if (text == nullptr) return "";
  const std::string marked = is_marked(*text) ? "'" + *text : *text;
  if (!marked.empty() && marked.find_first_of(",\"\r\n") == std::string::npos) return marked;
  return quoted_name(marked);
}

Status export_csv(rundb::Reader& reader, const std::string& folder, IfExists if_exists,
                  const RunPart& part, const OnProgress& on_progress) {
  RETURN_IF_ERROR(take_output_folder(folder, if_exists));
  ASSIGN_OR_RETURN(const rundb::Reader::Snapshot snapshot, reader.snapshot());
  ASSIGN_OR_RETURN(const std::vector<rundb::TableInfo> tables, rundb::Query(reader).tables());
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::optional<std::string> rows = rows_of(tables[i].name, part);
    if (!tables[i].is_view && rows)
      RETURN_IF_ERROR(export_table(reader, tables[i], *rows, folder, if_exists));
    if (on_progress) on_progress(static_cast<double>(i + 1) / static_cast<double>(tables.size()));
  }
  return ok_status();
}

}  // namespace sluice::report
