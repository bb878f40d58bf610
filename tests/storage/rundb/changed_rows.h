#pragma once
// Does something to the rows of a closed run database, as no writer would.

#include <string>

#include "storage/rundb/detail/connection.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {

inline void change_rows(const std::string& path, const std::string& sql) {
  auto connection = require_ok(detail::Connection::open(path, detail::Connection::Mode::write));
  require_ok(connection.execute(sql));
}

}  // namespace sluice::rundb
