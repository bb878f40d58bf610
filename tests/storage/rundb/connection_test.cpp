// What a statement's parameters hold over many runs: a value that one holds already is not bound
// again.

#include "storage/rundb/detail/connection.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb::detail {
namespace {

TEST_CASE("a parameter holds what was bound to it last, of whatever type that was") {
  const TempFolder folder;
  Connection connection =
      require_ok(Connection::open(folder.file("a.db"), Connection::Mode::create));
  require_ok(connection.execute("CREATE TABLE t (a, b)"));
  Statement insert = require_ok(connection.prepare("INSERT INTO t VALUES (?, ?)"));
  const std::optional<std::int64_t> none;
  const std::optional<std::int64_t> zero = 0;
  std::string text = "first";
  require_ok(insert.run(std::int64_t{0}, none));
  require_ok(insert.run(std::int64_t{0}, none));
  require_ok(insert.run(none, zero));
  require_ok(insert.run(zero, std::int64_t{7}));
  require_ok(insert.run(0.0, std::int64_t{7}));
  require_ok(insert.run(std::int64_t{0}, std::string_view(text)));
  text = "other";  // a text is looked at anew each time
  require_ok(insert.run(std::int64_t{0}, std::string_view(text)));
  require_ok(insert.run(std::int64_t{0}, std::int64_t{7}));

  Statement read = require_ok(connection.prepare("SELECT quote(a) || ' ' || quote(b) FROM t"));
  std::vector<std::string> rows;
  while (require_ok(read.step())) rows.push_back(read.text_at(0));
  CHECK(rows == std::vector<std::string>{"0 NULL", "0 NULL", "NULL 0", "0 7", "0.0 7", "0 'first'",
                                         "0 'other'", "0 7"});
}

TEST_CASE("a parameter that a statement has not is refused") {
  const TempFolder folder;
  Connection connection =
      require_ok(Connection::open(folder.file("a.db"), Connection::Mode::create));
  Statement one = require_ok(connection.prepare("SELECT ?"));
  require_ok(one.bind_all(std::int64_t{1}));
  CHECK(!one.bind_all(std::int64_t{1}, std::int64_t{2}).ok());
  CHECK(!one.bind_from(0, std::int64_t{1}).ok());
}

}  // namespace
}  // namespace sluice::rundb::detail
