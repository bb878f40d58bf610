#include "storage/rundb/detail/connection.h"

#include <sqlite3.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/check.h"
#include "base/safe_file.h"
#include "storage/rundb/detail/shared_index.h"

namespace sluice::rundb::detail {
namespace {

// A fraction of a millisecond: often enough for a person, and no part of what a question costs.
constexpr int kInstructionsBetweenPolls = 10'000;
constexpr int kValueMaxBytes = 16 << 20;  // the largest are the texts of a model and a platform

struct CodeMeaning {
  ErrorCode code;
  const char* what_to_do;
};

CodeMeaning meaning_of(int primary_code) {
  switch (primary_code) {
    case SQLITE_FULL:
      return {ErrorCode::no_space, "; free space on its file system"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::busy, "; another program holds it"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {
          ErrorCode::corrupt,
          "; the file is damaged or not a database: `sqlite3 FILE .recover` shows what is left"};
    case SQLITE_INTERRUPT:
      return {ErrorCode::cancelled, ""};
    case SQLITE_NOMEM:
      return {ErrorCode::memory, ""};
    case SQLITE_AUTH:
      return {ErrorCode::config, ""};
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return {
          ErrorCode::io,
          "; check the file, the permissions of its folder (readers of a live run need to write "
          "there, too) and the drive"};
    default:
      return {ErrorCode::internal, ""};
  }
}

// Whether a file of the database is as large as this process may make one.
bool is_at_file_limit(const std::string& path) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code error;
    const std::uintmax_t size_bytes = std::filesystem::file_size(path + suffix, error);
    if (!error && size_bytes >= limit.rlim_cur) return true;
  }
  return false;
}

// The kernel's error, where SQLite asked it for something; 0: none. SQLite keeps no reason why a
// commit could not be written.
int system_error_number(const std::string& path, sqlite3* database, int primary_code) {
  const bool is_of_the_kernel = primary_code == SQLITE_CANTOPEN || primary_code == SQLITE_IOERR;
  if (database == nullptr || !is_of_the_kernel) return 0;
  const int error_number = sqlite3_system_errno(database);
  const bool is_unsaid = error_number == 0 && primary_code == SQLITE_IOERR;
  return is_unsaid && is_at_file_limit(path) ? EFBIG : error_number;
}

// SQLite would wait for the other end of a pipe.
Status check_is_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::fifo && type != std::filesystem::file_type::socket &&
      type != std::filesystem::file_type::character)
    return ok_status();
  return make_error(ErrorCode::corrupt,
                    "{}: is a pipe, a socket or a device, and no run database: name a file", path);
}

Error sqlite_error(const std::string& path, sqlite3* database, int code, const char* call) {
  CodeMeaning meaning = meaning_of(code & 0xff);
  // A question that SQLite does not understand: its own words say what is wrong with it.
  if ((code & 0xff) == SQLITE_ERROR && database != nullptr)
    return make_error(meaning.code, "{}: {}", path, sqlite3_errmsg(database));
  const int error_number = system_error_number(path, database, code & 0xff);
  if (error_number == ENOSPC) meaning = meaning_of(SQLITE_FULL);  // said so by another call of it
  const std::string limit = file_limit_advice(error_number);
  return make_error(meaning.code, "{}: {}{} (SQLite code {}, in {}){}", path,
                    database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code),
                    error_number == 0 ? "" : fmt::format(": {}", std::strerror(error_number)), code,
                    std::string_view(call).substr(0, std::string_view(call).find('(')),
                    limit.empty() ? meaning.what_to_do : limit);
}

// SQLite counts what it allocates under a lock of the whole process unless told before its first
// use that nobody asks. Refused where another part of the process has used it before, which costs a
// recording one part in thirty.
void leave_memory_uncounted() {
  [[maybe_unused]] static const int code = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

}  // namespace

// The one check of SQLite's results. `database` explains the error; it may be null.
#define RETURN_IF_SQLITE_ERROR(path, database, call)               \
  do {                                                             \
    if (const int sqlite_code = (call); sqlite_code != SQLITE_OK)  \
      return sqlite_error((path), (database), sqlite_code, #call); \
  } while (false)

#define RETURN_IF_STATEMENT_ERROR(call) \
  RETURN_IF_SQLITE_ERROR(path_, sqlite3_db_handle(statement_.get()), call)

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);  // repeats the code of the last step, which was looked at there
}

Statement::Statement(std::string path, sqlite3_stmt* statement)
    : path_(std::move(path)),
      bound_(static_cast<std::size_t>(sqlite3_bind_parameter_count(statement))),
      statement_(statement) {}

// An index that is none of the statement's goes to SQLite, which says so.
template <typename Bind>
int Statement::bind_unless_held(int index, const Bound& bound, Bind&& bind) {
  const auto slot = static_cast<std::size_t>(index - 1);
  if (slot >= bound_.size()) return bind();
  if (bound_[slot] == bound) return SQLITE_OK;
  const int code = bind();
  bound_[slot] = code == SQLITE_OK ? bound : Bound{};
  return code;
}

void Statement::forget_bound(int index) {
  const auto slot = static_cast<std::size_t>(index - 1);
  if (slot < bound_.size()) bound_[slot] = {};
}

int Statement::bind(int index, std::int64_t value) {
  return bind_unless_held(index, {value, Bound::Kind::integer},
                          [&] { return sqlite3_bind_int64(statement_.get(), index, value); });
}

int Statement::bind(int index, std::optional<std::int64_t> value) {
  if (value) return bind(index, *value);
  return bind_unless_held(index, {0, Bound::Kind::null},
                          [&] { return sqlite3_bind_null(statement_.get(), index); });
}

int Statement::bind(int index, double value) {
  forget_bound(index);
  return sqlite3_bind_double(statement_.get(), index, value);
}

int Statement::bind(int index, std::string_view value) {
  forget_bound(index);
  // A null pointer would bind NULL where an empty text is meant.
  return sqlite3_bind_text64(statement_.get(), index, value.empty() ? "" : value.data(),
                             value.size(), SQLITE_STATIC, SQLITE_UTF8);
}

int Statement::bind(int index, std::optional<std::string_view> value) {
  return value ? bind(index, *value) : bind(index, std::optional<std::int64_t>());
}

int Statement::bind_cell(int index, const Cell& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return bind(index, *integer);
  if (const auto* real = std::get_if<double>(&value)) return bind(index, *real);
  if (const auto* text = std::get_if<std::string>(&value))
    return bind(index, std::string_view(*text));
  return bind(index, std::optional<std::int64_t>());
}

Error Statement::bind_error(int code) const {
  return sqlite_error(path_, sqlite3_db_handle(statement_.get()), code, "sqlite3_bind");
}

Status Statement::bind_cells(std::span<const Cell> cells) {
  int index = 0;
  for (const Cell& cell : cells) {
    if (const int code = bind_cell(++index, cell); code != SQLITE_OK) return bind_error(code);
  }
  return ok_status();
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Error error = sqlite_error(path_, sqlite3_db_handle(statement_.get()), code, "sqlite3_step");
  sqlite3_reset(statement_.get());  // says the same again
  return error;
}

Status Statement::reset() {
  RETURN_IF_STATEMENT_ERROR(sqlite3_reset(statement_.get()));
  return ok_status();
}

int Statement::column_count() const { return sqlite3_column_count(statement_.get()); }

std::string Statement::column_name(int column) const {
  return sqlite3_column_name(statement_.get(), column);
}

std::string Statement::column_origin(int column) const {
  const char* table = sqlite3_column_table_name(statement_.get(), column);
  const char* name = sqlite3_column_origin_name(statement_.get(), column);
  return table == nullptr || name == nullptr ? "" : fmt::format("{}.{}", table, name);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::int64_at(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::double_at(int column) const {
  if (is_null(column)) return std::numeric_limits<double>::quiet_NaN();
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text_at(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

Cell Statement::cell_at(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_NULL:
      return {};
    case SQLITE_INTEGER:
      return int64_at(column);
    case SQLITE_FLOAT:
      return double_at(column);
    default:
      return text_at(column);
  }
}

namespace {

std::string log_of(const std::string& path) { return path + "-wal"; }

// A reader of a file that was written with a log, such as a copy of a killed run's, makes an empty
// log and cannot remove it. Whoever may write does so where he closes last, which SQLite knows; he
// writes nothing, and where he may not, the log stays.
void remove_empty_log(const std::string& path) {
  std::error_code error;
  if (std::filesystem::file_size(log_of(path), error) != 0 || error) return;
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_READWRITE;
  if (sqlite3_open_v2(path.c_str(), &database, flags, whole_index_vfs()) == SQLITE_OK) {
    sqlite3_exec(database, "PRAGMA user_version", nullptr, nullptr, nullptr);  // opens the log
  }
  sqlite3_close(database);
}

}  // namespace

void Connection::Close::operator()(sqlite3* database) const {
  // BUSY: a statement outlived its connection.
  CHECK_EQ(sqlite3_close(database), SQLITE_OK);
  if (!without_log.empty()) remove_empty_log(without_log);
}

Connection::Connection(std::string path, sqlite3* database)
    : path_(std::move(path)), database_(database) {}

Result<Connection> Connection::open(const std::string& path, Mode mode) {
  leave_memory_uncounted();
  RETURN_IF_ERROR(check_is_file(path));
  int flags = SQLITE_OPEN_NOMUTEX;  // see the thread contract
  if (mode == Mode::read) flags |= SQLITE_OPEN_READONLY;
  if (mode == Mode::write) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::create) flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  std::error_code error;
  const bool has_log = std::filesystem::exists(log_of(path), error);
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &database, flags, whole_index_vfs());
  Connection connection(path, database);  // also after a failure there is a handle to close
  if (code != SQLITE_OK) return sqlite_error(path, database, code, "sqlite3_open_v2");
  if (mode == Mode::read && !has_log) connection.database_.get_deleter().without_log = path;
  sqlite3_extended_result_codes(database, 1);
  RETURN_IF_ERROR(connection.distrust(mode));
  // A reader meets a lock only in the instant when another connection recovers or closes the log.
  connection.set_busy_timeout_ms(2000);
  return connection;
}

// https://www.sqlite.org/security.html, for files that come from anywhere: no triggers, no function
// with side effects called from the file's own views and indexes, no damage to the file by SQL, and
// no value larger than what Sluice writes.
Status Connection::distrust(Mode mode) {
  sqlite3* database = database_.get();
  RETURN_IF_SQLITE_ERROR(path_, database,
                         sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr));
  RETURN_IF_SQLITE_ERROR(path_, database,
                         sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr));
  if (mode == Mode::create) return ok_status();  // an export is written without a journal
  RETURN_IF_SQLITE_ERROR(path_, database,
                         sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
  sqlite3_limit(database, SQLITE_LIMIT_LENGTH, kValueMaxBytes);
  return ok_status();
}

Status Connection::execute(const std::string& sql) {
  RETURN_IF_SQLITE_ERROR(path_, database_.get(),
                         sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
  return ok_status();
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  RETURN_IF_SQLITE_ERROR(
      path_, database_.get(),
      sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
  if (statement == nullptr)
    return make_error(ErrorCode::config, "{}: there is no statement in '{}'", path_, sql);
  return Statement(path_, statement);
}

namespace {

// A second statement, if there is one behind what SQLite took; comments and semicolons are none.
bool has_statement(sqlite3* database, const char* rest, const char* end) {
  while (rest < end) {
    sqlite3_stmt* next = nullptr;
    const char* tail = rest;
    const int code = sqlite3_prepare_v2(database, rest, static_cast<int>(end - rest), &next, &tail);
    sqlite3_finalize(next);
    if (code != SQLITE_OK || next != nullptr) return true;
    if (tail <= rest) return false;
    rest = tail;
  }
  return false;
}

}  // namespace

Result<Statement> Connection::prepare_alone(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const char* tail = nullptr;
  RETURN_IF_SQLITE_ERROR(path_, database_.get(),
                         sqlite3_prepare_v3(database_.get(), sql.data(),
                                            static_cast<int>(sql.size()), 0, &statement, &tail));
  if (statement == nullptr) return make_error(ErrorCode::config, "there is no statement");
  Statement alone(path_, statement);
  if (has_statement(database_.get(), tail, sql.data() + sql.size()))
    return make_error(ErrorCode::config, "there is more than one statement; ask one at a time");
  return alone;
}

Result<std::int64_t> Connection::query_int64(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, prepare(sql));
  ASSIGN_OR_RETURN(const bool has_row, statement.step());
  return has_row ? statement.int64_at(0) : 0;
}

Result<std::string> Connection::query_text(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, prepare(sql));
  ASSIGN_OR_RETURN(const bool has_row, statement.step());
  return has_row ? statement.text_at(0) : std::string();
}

void Connection::roll_back() {
  // Some errors (disk full among them) have already rolled back: then there is nothing to do.
  if (sqlite3_get_autocommit(database_.get()) != 0) return;
  sqlite3_exec(database_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Connection::set_busy_timeout_ms(int timeout_ms) {
  sqlite3_busy_timeout(database_.get(), timeout_ms);
}

void Connection::end_if(Stops stops) {
  stops_ = stops ? std::make_unique<Stops>(std::move(stops)) : nullptr;
  const auto ask = [](void* asked) { return (*static_cast<const Stops*>(asked))() ? 1 : 0; };
  sqlite3_progress_handler(database_.get(), kInstructionsBetweenPolls, stops_ ? +ask : nullptr,
                           stops_.get());
}

namespace {

int allow_question(void* /*unused*/, int action, const char* /*first*/, const char* name,
                   const char* /*database*/, const char* /*inside*/) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return name != nullptr && sqlite3_stricmp(name, "load_extension") == 0 ? SQLITE_DENY
                                                                             : SQLITE_OK;
    default:
      return SQLITE_DENY;
  }
}

}  // namespace

Status Connection::allow_questions_only() {
  RETURN_IF_SQLITE_ERROR(path_, database_.get(),
                         sqlite3_set_authorizer(database_.get(), allow_question, nullptr));
  return ok_status();
}

}  // namespace sluice::rundb::detail
