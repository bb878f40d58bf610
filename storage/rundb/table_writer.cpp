#include "storage/rundb/table_writer.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/check.h"
#include "storage/rundb/detail/connection.h"

namespace sluice::rundb {
namespace {

constexpr std::int64_t kRowsPerTransaction = 50'000;
// Nobody reads the file before it is whole, and whoever is interrupted writes it again.
constexpr const char* kSettings =
    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE";

}  // namespace

struct TableWriter::Impl {
  detail::Connection connection;
  std::vector<detail::Statement> inserts = {};
  std::int64_t row_count = 0;
};

TableWriter::TableWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TableWriter::~TableWriter() = default;

Result<std::unique_ptr<TableWriter>> TableWriter::create(const std::string& path,
                                                         const std::string& schema_sql) {
  std::error_code error;
  if (std::filesystem::exists(path, error))
    return make_error(ErrorCode::config, "{}: exists already", path);
  ASSIGN_OR_RETURN(detail::Connection connection,
                   detail::Connection::open(path, detail::Connection::Mode::create));
  RETURN_IF_ERROR(connection.execute(kSettings));
  RETURN_IF_ERROR(connection.execute("BEGIN"));
  RETURN_IF_ERROR(connection.execute(schema_sql));
  return std::unique_ptr<TableWriter>(
      new TableWriter(std::unique_ptr<Impl>(new Impl{.connection = std::move(connection)})));
}

Result<std::size_t> TableWriter::prepare_rows(std::string_view table, std::string_view columns) {
  std::string marks = "?";
  for (auto left = std::ranges::count(columns, ','); left > 0; --left) marks += ", ?";
  ASSIGN_OR_RETURN(detail::Statement insert,
                   impl_->connection.prepare(
                       fmt::format("INSERT INTO {} ({}) VALUES ({})", table, columns, marks)));
  impl_->inserts.push_back(std::move(insert));
  return impl_->inserts.size() - 1;
}

Status TableWriter::append(std::size_t rows, std::span<const Cell> cells) {
  CHECK_LT(rows, impl_->inserts.size());
  detail::Statement& insert = impl_->inserts[rows];
  RETURN_IF_ERROR(insert.bind_cells(cells));
  RETURN_IF_ERROR(insert.step());
  RETURN_IF_ERROR(insert.reset());
  if (++impl_->row_count % kRowsPerTransaction != 0) return ok_status();
  return impl_->connection.execute("COMMIT; BEGIN");
}

Status TableWriter::close() {
  impl_->inserts.clear();
  return impl_->connection.execute("COMMIT");
}

}  // namespace sluice::rundb
