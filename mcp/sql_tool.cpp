#include "mcp/tool_groups.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::mcp {
namespace {

using analyze::Outcome;

constexpr std::int64_t kRowsDefault = 100;
constexpr std::int64_t kRowsMost = 10'000;

Json cell_json(const rundb::Cell& cell) {
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return *integer;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

// A few bytes a cell, and a text's own: as large as an answer may be, rows are kept no longer.
std::size_t bytes_of(const rundb::Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? 2 : text->size() + 2;
}

Result<Answered> query_sql(const Arguments& arguments, const Call& call) {
  ASSIGN_OR_RETURN(const std::string database, database_at(arguments, call));
  ASSIGN_OR_RETURN(const std::unique_ptr<rundb::Reader> reader, rundb::Reader::open(database));
  rundb::Query query(*reader);
  query.end_if(call.stops);
  const std::int64_t rows_max = arguments.integer("max_rows").value_or(kRowsDefault);
  Answered answered;
  answered.data["columns"] = Json::array();
  answered.data["rows"] = Json::array();
  std::size_t bytes = 0;
  bool is_cut = false;
  const Status asked = query.each_row_of_question(
      arguments.text("sql").value_or(""),
      [&](std::span<const std::string> columns) {
        for (const std::string& column : columns) answered.data["columns"].push_back(column);
        return ok_status();
      },
      [&](std::span<const rundb::Cell> row) -> Status {
        Json& rows = answered.data["rows"];
        is_cut = static_cast<std::int64_t>(rows.size()) == rows_max || bytes > call.bytes_max;
        if (is_cut) return make_error(ErrorCode::cancelled, "enough rows");
        Json& line = rows.emplace_back(Json::array());
        for (const rundb::Cell& cell : row) {
          bytes += bytes_of(cell);
          line.push_back(cell_json(cell));
        }
        return ok_status();
      });
  if (!asked.ok() && !is_cut) return asked.error();
  const std::size_t count = answered.data["rows"].size();
  answered.data["has_more_rows"] = is_cut;
  answered.outcome = count == 0 ? Outcome::nothing_found : Outcome::answer;
  answered.why = fmt::format("{} rows{}", count,
                             is_cut ? " and more: max_rows up to 10000, max_bytes, or LIMIT and "
                                      "OFFSET"
                                    : "");
  return answered;
}

}  // namespace

std::vector<Tool> sql_tools() {
  return {
      {"query_sql",
       Effect::reads,
       "One SELECT over a run database (SQLite). Tables: meta, step, span, track, string, link, "
       "device, flow, counter, knob_change, stat, verdict and others; views: transfer, kernel, "
       "link_bytes; SELECT sql FROM sqlite_schema shows their columns. Ids of steps count from "
       "0, times are nanoseconds. Writes, PRAGMA, ATTACH are refused.",
       {run_parameter(),
        {"sql", Parameter::Type::text, "one SELECT, or WITH ... SELECT", true},
        {"max_rows", Parameter::Type::integer, "rows at most; default 100", false, 1, kRowsMost}},
       query_sql}};
}

}  // namespace sluice::mcp
