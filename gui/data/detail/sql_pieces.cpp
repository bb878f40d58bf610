#include "gui/data/detail/sql_pieces.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "gui/data/cells.h"
#include "storage/rundb/query.h"

namespace sluice::gui::detail {
namespace {

std::optional<std::size_t> column_named(const SqlAnswer& answer, const std::string& name) {
  const auto found = std::ranges::find(answer.columns, name);
  if (found == answer.columns.end()) return {};
  return static_cast<std::size_t>(found - answer.columns.begin());
}

void take_columns(SqlAnswer& answer, std::size_t ts_column) {
  const std::optional<std::size_t> dur_column = column_named(answer, "dur");
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    const std::vector<std::string>& line = answer.rows[row];
    const std::optional<std::int64_t> ts = whole_number(line[ts_column]);
    if (!ts) continue;
    const std::int64_t dur = dur_column ? whole_number(line[*dur_column]).value_or(0) : 0;
    answer.pieces.push_back({*ts, std::max<std::int64_t>(0, dur), row});
  }
}

void take_spans(rundb::Reader& reader, SqlAnswer& answer) {
  std::multimap<std::int64_t, std::size_t> rows;  // by id
  std::vector<std::int64_t> ids;
  for (std::size_t row = 0; row < answer.rows.size(); ++row) {
    const std::optional<std::int64_t> id = answer.span_id_of(row);
    if (!id) continue;
    rows.emplace(*id, row);
    ids.push_back(*id);
  }
  if (ids.empty()) return;
  const Status read = rundb::Query(reader).each_row(
      fmt::format("SELECT id, ts, dur FROM span WHERE id IN ({})", fmt::join(ids, ",")),
      [&](std::span<const rundb::Cell> cells) {
        const auto [first, last] = rows.equal_range(integer_of(cells[0]));
        for (auto row = first; row != last; ++row)
          answer.pieces.push_back({integer_of(cells[1]), integer_of(cells[2]), row->second});
        return ok_status();
      });
  if (!read.ok()) answer.pieces.clear();  // the answer itself is there
}

}  // namespace

void find_pieces(rundb::Reader& reader, SqlAnswer& answer) {
  if (answer.rows.empty()) return;
  if (const auto ts_column = column_named(answer, "ts")) {
    take_columns(answer, *ts_column);
  } else if (answer.span_column) {
    take_spans(reader, answer);
  }
  std::ranges::stable_sort(answer.pieces, {}, &SqlPiece::ts);
}

}  // namespace sluice::gui::detail
