// Files that are not to be opened, or not to be overwritten.

#include <sys/stat.h>

#include <fstream>

#include "storage/rundb/detail/connection.h"
#include "storage/rundb/query.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

using Catch::Matchers::Contains;
using detail::Connection;

void make_run(const std::string& path) {
  auto writer = require_ok(Writer::create(path, IfExists::refuse));
  for (int step = 0; step < 20; ++step) require_ok(writer->append(whole_step(*writer, step, 100)));
  require_ok(writer->close());
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Both ways to open say the same.
void require_refused(const std::string& path, ErrorCode code, const std::string& words) {
  const auto reader = Reader::open(path);
  REQUIRE_FALSE(reader.ok());
  CHECK_THAT(reader.error().message(), Contains(words) && Contains(path));
  REQUIRE(static_cast<int>(reader.error().code()) == static_cast<int>(code));
  const auto writer = Writer::open_append(path, 0);
  REQUIRE_FALSE(writer.ok());
  REQUIRE(static_cast<int>(writer.error().code()) == static_cast<int>(code));
}

TEST_CASE("a file of a newer Sluice is refused, saying which wrote it") {
  const TempFolder folder;
  make_run(folder.file("run.db"));
  {
    auto connection = require_ok(Connection::open(folder.file("run.db"), Connection::Mode::write));
    require_ok(connection.execute(
        "PRAGMA user_version = 11; UPDATE meta SET value = 'Sluice 4.2' WHERE key = 'written_by'"));
  }
  require_refused(folder.file("run.db"), ErrorCode::unsupported,
                  "written by Sluice 4.2 with schema version 11");
}

TEST_CASE("a missing file is refused") {
  const TempFolder folder;
  require_refused(folder.file("none.db"), ErrorCode::not_found, "there is no");
}

TEST_CASE("a pipe is refused, and not waited for") {
  const TempFolder folder;
  REQUIRE(::mkfifo(folder.file("a.db").c_str(), 0600) == 0);
  require_refused(folder.file("a.db"), ErrorCode::corrupt, "is a pipe");
}

TEST_CASE("the writer's lock is no way to a file that lies elsewhere") {
  const TempFolder folder;
  const std::string precious = folder.file("precious");
  const std::string lock = folder.file("a.db-writer");
  write_text(precious, "words");
  const auto refused = [&](const std::string& words) {
    const auto writer = Writer::create(folder.file("a.db"), IfExists::refuse);
    REQUIRE_FALSE(writer.ok());
    CHECK_THAT(writer.error().message(), Contains(lock) && Contains(words));
    CHECK(std::filesystem::file_size(precious) == 5);
  };
  SECTION("a link") {
    std::filesystem::create_symlink(precious, lock);
    refused("is a symbolic link");
  }
  SECTION("a second name") {
    std::filesystem::create_hard_link(precious, lock);
    refused("2 names (hard links)");
  }
  SECTION("a pipe") {
    REQUIRE(::mkfifo(lock.c_str(), 0600) == 0);
    refused("is a pipe");
  }
}

TEST_CASE("a foreign SQLite file is refused") {
  const TempFolder folder;
  {
    auto connection = require_ok(Connection::open(folder.file("a.db"), Connection::Mode::create));
    require_ok(connection.execute("CREATE TABLE other (x)"));
  }
  require_refused(folder.file("a.db"), ErrorCode::corrupt, "not a run database of Sluice");
}

TEST_CASE("a file that is no SQLite file is refused") {
  const TempFolder folder;
  write_text(folder.file("a.db"), std::string(10'000, 'x'));
  require_refused(folder.file("a.db"), ErrorCode::corrupt, "not a database");
}

TEST_CASE("a file that was cut is refused") {
  const TempFolder folder;
  make_run(folder.file("run.db"));
  std::filesystem::resize_file(folder.file("run.db"),
                               std::filesystem::file_size(folder.file("run.db")) / 2);
  require_refused(folder.file("run.db"), ErrorCode::corrupt, "damaged");
}

TEST_CASE("a reader leaves no log where there was none, be the file whole or damaged") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  make_run(path);
  {  // as a run that was killed leaves it, without its log
    auto connection = require_ok(Connection::open(path, Connection::Mode::write));
    require_ok(connection.execute("PRAGMA journal_mode = WAL"));
  }
  const auto has_log = [&] {
    return std::filesystem::exists(path + "-wal") || std::filesystem::exists(path + "-shm");
  };
  REQUIRE_FALSE(has_log());
  {
    const auto reader = require_ok(Reader::open(path));
    CHECK(require_ok(reader->steps()).size() == 20);
    CHECK(has_log());
    // Whoever comes later finds a log, and leaves it to the first.
    const auto second = require_ok(Reader::open(path));
    CHECK(require_ok(second->steps()).size() == 20);
  }
  CHECK_FALSE(has_log());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_FALSE(Reader::open(path).ok());
  CHECK_FALSE(has_log());
}

TEST_CASE("a file damaged inside is an error of the query that meets the damage") {
  const TempFolder folder;
  make_run(folder.file("run.db"));
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(folder.file("run.db")));
  {
    // The last eighth: these pages are the spans', and not the schema's, which open() reads.
    std::fstream file(folder.file("run.db"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(size / 8 * 7);
    file << std::string(static_cast<std::size_t>(size - size / 8 * 7), '\x5a');
  }
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  const auto totals = reader->span_totals();
  REQUIRE_FALSE(totals.ok());
  REQUIRE(totals.error().code() == ErrorCode::corrupt);
}

TEST_CASE("an existing file is replaced only when asked, and only if it is a run database") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  make_run(path);
  const auto refused = Writer::create(path, IfExists::refuse);
  REQUIRE_FALSE(refused.ok());
  REQUIRE(refused.error().code() == ErrorCode::config);
  REQUIRE_THAT(refused.error().message(), Contains("--resume"));
  REQUIRE(require_ok(require_ok(Reader::open(path))->steps()).size() == 20);

  auto writer = require_ok(Writer::create(path, IfExists::replace));
  REQUIRE(require_ok(require_ok(Reader::open(path))->steps()).empty());

  const std::string precious = folder.file("thesis.txt");
  write_text(precious, "years of work");
  const auto kept = Writer::create(precious, IfExists::replace);
  REQUIRE_FALSE(kept.ok());
  REQUIRE(kept.error().code() == ErrorCode::config);
  REQUIRE(std::filesystem::file_size(precious) == 13);
}

TEST_CASE("a second writer is refused while the first records, and let in after it") {
  const TempFolder folder;
  const std::string path = folder.file("run.db");
  auto writer = require_ok(Writer::create(path, IfExists::refuse));
  for (const auto& second : {Writer::open_append(path, 0).map([](auto&&) {}),
                             Writer::create(path, IfExists::replace).map([](auto&&) {})}) {
    REQUIRE_FALSE(second.has_value());
    REQUIRE(second.error().code() == ErrorCode::busy);
  }
  require_ok(writer->append(whole_step(*writer, 0, 1)));
  require_ok(writer->close());
  writer.reset();
  require_ok(Writer::open_append(path, 1));
}

TEST_CASE("a folder that is not there is named") {
  const TempFolder folder;
  const auto writer = Writer::create(folder.file("none/run.db"), IfExists::refuse);
  REQUIRE_FALSE(writer.ok());
  REQUIRE(writer.error().code() == ErrorCode::not_found);
}

TEST_CASE("a reader cannot write") {
  const TempFolder folder;
  make_run(folder.file("run.db"));
  auto reader = require_ok(Reader::open(folder.file("run.db")));
  REQUIRE_FALSE(Query(*reader).text_table("DELETE FROM step").ok());
  REQUIRE(require_ok(reader->steps()).size() == 20);
}

}  // namespace
}  // namespace sluice::rundb
