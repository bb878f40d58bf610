#pragma once
// Writes a new SQLite file with tables of any schema: what a run becomes for tools that read other
// tables than ours. Rows go in by the ten thousands a transaction; a file that was not closed is
// no whole one.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

class TableWriter {
 public:
  // `path` must not exist. `schema_sql`: statements that make the tables and what stands in them
  // from the start.
  static Result<std::unique_ptr<TableWriter>> create(const std::string& path,
                                                     const std::string& schema_sql);
  ~TableWriter();

  // For append(): rows of these columns, "start, end, name".
  Result<std::size_t> prepare_rows(std::string_view table, std::string_view columns);
  Status append(std::size_t rows, std::span<const Cell> cells);
  Status close();

 private:
  struct Impl;  // keeps SQLite out of this header
  explicit TableWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::rundb
