#include "storage/rundb/detail/schema.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/check.h"
#include "storage/rundb/detail/row_io.h"
#include "storage/rundb/detail/sql_texts.h"
#include "storage/rundb/sql_text.h"

namespace sluice::rundb::detail {
namespace {

Error foreign(const std::string& path) {
  return make_error(ErrorCode::corrupt,
                    "{}: an SQLite file, but not a run database of Sluice; name the file that "
                    "`sluice train --db` wrote",
                    path);
}

}  // namespace

Status create_schema(Connection& connection) {
  return connection.transaction([&]() -> Status {
    RETURN_IF_ERROR(connection.execute(fmt::format(
        "PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kSchemaVersion)));
    RETURN_IF_ERROR(connection.execute(kTablesSql));
    RETURN_IF_ERROR(connection.execute(kViewsSql));
    ASSIGN_OR_RETURN(const std::string sqlite, connection.query_text("SELECT sqlite_version()"));
    const std::array about = {MetaRow{"written_by", fmt::format("Sluice {}", kSluiceVersion)},
                              MetaRow{"sqlite_version", sqlite}};
    return write_rows<MetaRow>(connection, "insert_meta", about);
  });
}

Result<std::vector<SchemaEntity>> entities_of(Connection& connection) {
  ASSIGN_OR_RETURN(Statement statement, connection.prepare(read_sql("schema")));
  std::vector<SchemaEntity> entities;
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, statement.step());
    if (!has_row) return entities;
    entities.push_back({statement.text_at(0), statement.text_at(1), statement.text_at(2)});
  }
}

namespace {

Status check_entities(Connection& connection) {
  ASSIGN_OR_RETURN(const std::vector<SchemaEntity> wanted, schema_of_sluice());
  ASSIGN_OR_RETURN(const std::vector<SchemaEntity> found, entities_of(connection));
  for (const SchemaEntity& entity : wanted) {
    if (std::ranges::find(found, entity) != found.end()) continue;
    return make_error(ErrorCode::corrupt,
                      "{}: its {} '{}' is missing or not as Sluice makes it: another program "
                      "changed the file, or made it",
                      connection.path(), entity.type, entity.name);
  }
  const auto trigger = std::ranges::find(found, "trigger", &SchemaEntity::type);
  if (trigger == found.end()) return ok_status();
  return make_error(ErrorCode::corrupt,
                    "{}: has a trigger '{}', and Sluice makes none: another program changed the "
                    "file; drop the trigger if you trust the rest",
                    connection.path(), trigger->name);
}

Result<std::string> writer_of(Connection& connection) {
  ASSIGN_OR_RETURN(const std::int64_t has_meta, connection.query_int64(read_sql("has_meta_table")));
  if (has_meta == 0) return std::string();
  return connection.query_text(read_sql("written_by"));
}

}  // namespace

Result<std::vector<SchemaEntity>> schema_of_sluice() {
  ASSIGN_OR_RETURN(Connection connection, Connection::open(":memory:", Connection::Mode::create));
  RETURN_IF_ERROR(connection.execute(kTablesSql));
  RETURN_IF_ERROR(connection.execute(kViewsSql));
  return entities_of(connection);
}

std::string sample_tables_sql() { return kSamplesSql; }

Result<std::vector<SchemaEntity>> sample_tables_of_sluice() {
  ASSIGN_OR_RETURN(Connection connection, Connection::open(":memory:", Connection::Mode::create));
  RETURN_IF_ERROR(connection.execute(kSamplesSql));
  return entities_of(connection);
}

Status check_schema(Connection& connection) {
  // The first query reads the file, so this is where one that is not SQLite's, or cut, fails.
  ASSIGN_OR_RETURN(const std::int64_t application_id,
                   connection.query_int64("PRAGMA application_id"));
  ASSIGN_OR_RETURN(const std::int64_t version, connection.query_int64("PRAGMA user_version"));
  if (application_id != kApplicationId) return foreign(connection.path());
  if (version == kSchemaVersion) return check_entities(connection);
  // Every version has table meta and this key in it, so that an older Sluice can say who wrote it.
  ASSIGN_OR_RETURN(const std::string writer, writer_of(connection));
  return make_error(ErrorCode::unsupported,
                    "{}: written by {} with schema version {}; this is Sluice {}, which knows "
                    "version {}: open it with the Sluice that wrote it, or a newer one",
                    connection.path(), writer.empty() ? "an unknown Sluice" : writer, version,
                    kSluiceVersion, kSchemaVersion);
}

Result<bool> is_run_database_file(const std::string& path) {
  // https://www.sqlite.org/fileformat2.html: the magic text, and at 68 the application id, with its
  // highest byte first.
  constexpr std::string_view kMagic("SQLite format 3\0", 16);
  constexpr std::size_t kApplicationIdAt = 68;
  std::array<char, kApplicationIdAt + 4> header{};
  std::ifstream file(path, std::ios::binary);
  if (!file) return make_error(ErrorCode::io, "{}: cannot read: {}", path, std::strerror(errno));
  file.read(header.data(), header.size());
  if (file.gcount() == 0) return true;
  std::int32_t application_id = 0;
  for (std::size_t i = kApplicationIdAt; i < header.size(); ++i)
    application_id = application_id << 8 | static_cast<unsigned char>(header[i]);
  return std::string_view(header.data(), kMagic.size()) == kMagic &&
         application_id == kApplicationId;
}

}  // namespace sluice::rundb::detail
