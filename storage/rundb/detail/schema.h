#pragma once
// Which file is a run database, and of which version. The tables themselves are data:
// storage/rundb/sql/tables.sql and views.sql.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "storage/rundb/detail/connection.h"

namespace sluice::rundb::detail {

inline constexpr std::int64_t kSchemaVersion = 10;          // PRAGMA user_version
inline constexpr std::int32_t kApplicationId = 0x536c6365;  // "Slce": PRAGMA application_id

// Makes the tables and views, and notes which Sluice wrote them, in one transaction.
Status create_schema(Connection& connection);

// A table, view, index or trigger.
struct SchemaEntity {
  std::string type;
  std::string name;
  std::string sql;
  bool operator==(const SchemaEntity&) const = default;
};
// The tables and views that create_schema() makes, by name.
Result<std::vector<SchemaEntity>> schema_of_sluice();
// Those of a connection.
Result<std::vector<SchemaEntity>> entities_of(Connection& connection);
// The tables of the processor samples, which a file may have besides.
Result<std::vector<SchemaEntity>> sample_tables_of_sluice();
std::string sample_tables_sql();

// A run database may come from anywhere, and a view in place of a table would run what its author
// wrote. So tables and views must be those of Sluice, to the letter, and there must be no trigger;
// tables, views and indexes that others have added are let be, and nothing here reads them.
//
// Errors: corrupt (foreign, damaged, changed), unsupported (a newer Sluice wrote it).
Status check_schema(Connection& connection);

// True for a file whose header says that it is a run database, and for an empty file (a recording
// that was killed as it began). Looks at bytes, so it works on damaged and locked files.
Result<bool> is_run_database_file(const std::string& path);

}  // namespace sluice::rundb::detail
