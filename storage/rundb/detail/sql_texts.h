#pragma once
// The statements of sql/reads.sql and sql/writes.sql by their names, with the columns that rows
// declare (storage/rundb/detail/tables.h) in the places that ask for them:
//
//   {columns step}      step.id, step.ts, ...
//   {names step}        id, ts, ...
//   {marks step}        ?, ?, ...                       (a mark a column)
//   {row step}          step (id, ts, ...) VALUES (?, ?, ...)
//   {row step but id}   the same without that column
//   {updates step}      id = excluded.id, ts = excluded.ts, ...
//
// Thread contract: free functions; texts live as long as the program.

#include <string>
#include <string_view>
#include <vector>

#include "storage/rundb/detail/columns.h"

namespace sluice::rundb::detail {

// A mistake of the program, and a CHECK: a name that the file does not have.
std::string_view read_sql(std::string_view name);
std::string_view write_sql(std::string_view name);

// The declarations of the tables, as data.
struct DeclaredColumn {
  std::string_view name;  // "ts", or "knob.name" of another table
  SqlType type = SqlType::integer;
  bool is_nullable = false;
};
struct DeclaredTable {
  std::string_view name;
  std::vector<DeclaredColumn> columns;
};
const std::vector<DeclaredTable>& declared_tables();

// `text` with columns in the places that ask for them.
std::string with_columns(std::string_view text);

}  // namespace sluice::rundb::detail
