#pragma once
// Rows of the run database to and from statements, as their tables declare them
// (storage/rundb/detail/tables.h): columns are read, and parameters bound, in the order of the
// declaration.
//
// Thread contract: free functions, in the thread of the statement's connection.

#include <cstddef>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"
#include "storage/rundb/detail/sql_texts.h"
#include "storage/rundb/detail/tables.h"

namespace sluice::rundb::detail {

// From the columns that begin at `first`: those of a `{columns ...}` in sql/reads.sql.
template <typename Row>
Row row_at(const Statement& statement, int first = 0) {
  Row row;
  const auto take_all = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    (std::get<kAt>(kTable<Row>.columns).take(row, statement, first + static_cast<int>(kAt)), ...);
  };
  take_all(std::make_index_sequence<static_cast<std::size_t>(kTable<Row>.kColumnCount)>());
  return row;
}

// To the parameters that begin at `first`, all columns but the first `kSkipped`. Texts must
// live until the statement is reset.
template <std::size_t kSkipped = 0, typename Row>
Status bind_row(Statement& statement, int first, const Row& row) {
  const auto bind_all = [&]<std::size_t... kAt>(std::index_sequence<kAt...>) {
    return statement.bind_from(first, std::get<kAt + kSkipped>(kTable<Row>.columns).stored(row)...);
  };
  return bind_all(
      std::make_index_sequence<static_cast<std::size_t>(kTable<Row>.kColumnCount) - kSkipped>());
}

// Runs a statement that writes one row.
template <typename Row>
Status write_row(Statement& statement, const Row& row) {
  RETURN_IF_ERROR(bind_row(statement, 1, row));
  return statement.run_bound();
}

// The one of that name in sql/writes.sql.
inline Result<Statement> prepare_write(Connection& connection, std::string_view name) {
  return connection.prepare(write_sql(name));
}

// By one statement of sql/writes.sql, for rows that are written once.
template <typename Row>
Status write_rows(Connection& connection, std::string_view name, std::span<const Row> rows) {
  ASSIGN_OR_RETURN(Statement statement, prepare_write(connection, name));
  for (const Row& row : rows) RETURN_IF_ERROR(write_row(statement, row));
  return ok_status();
}

// All rows of a query of sql/reads.sql without parameters, within no bounds: for the writer, which
// reads what it goes on with.
template <typename Row>
Result<std::vector<Row>> read_rows(Connection& connection, std::string_view name) {
  ASSIGN_OR_RETURN(Statement statement, connection.prepare(read_sql(name)));
  std::vector<Row> rows;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return rows;
    rows.push_back(row_at<Row>(statement));
  }
}

}  // namespace sluice::rundb::detail
