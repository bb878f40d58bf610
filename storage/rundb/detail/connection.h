#pragma once
// SQLite as two owned handles. Every call's result is looked at; an error names the file, the call
// and SQLite's own code and words.
//
// Thread contract: a connection and its statements belong to one thread at a time. Statements are
// destroyed before their connection.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "storage/rundb/rows.h"

struct sqlite3;
struct sqlite3_stmt;

namespace sluice::rundb::detail {

class Statement {
 public:
  // Binds the values to parameters 1, 2, ..., runs to the end, and is ready to run again.
  template <typename... Values>
  Status run(const Values&... values) {
    RETURN_IF_ERROR(bind_all(values...));
    return run_bound();
  }

  template <typename... Values>
  Status bind_all(const Values&... values) {
    return bind_from(1, values...);
  }
  // To parameters `first`, `first` + 1, ...
  template <typename... Values>
  Status bind_from(int first, const Values&... values) {
    int index = first;
    int code = 0;
    (void)(((code = bind(index++, values)) == 0) && ...);
    return code == 0 ? ok_status() : bind_error(code);
  }
  // Runs to the end what is bound, and is ready to run again.
  Status run_bound() {
    RETURN_IF_ERROR(step());
    return reset();
  }

  Status bind_cells(std::span<const Cell> cells);  // texts must live until the statement is reset

  Result<bool> step();  // true: there is a row to read
  Status reset();

  int column_count() const;
  std::string column_name(int column) const;
  std::string column_origin(int column) const;  // "span.id"; "" where it is worked out
  bool is_null(int column) const;
  std::int64_t int64_at(int column) const;
  double double_at(int column) const;  // NULL is NaN
  std::string text_at(int column) const;
  Cell cell_at(int column) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(std::string path, sqlite3_stmt* statement);

  // SQLite's code, 0 if all is well: a recording binds thirteen values a span, and a Status each
  // is a tenth of what it costs. A value that a parameter holds already is not bound again: of a
  // span's values most are those of the span before it, or of the one 32 rows before.
  int bind(int index, std::int64_t value);
  int bind(int index, std::optional<std::int64_t> value);
  int bind(int index, double value);            // NaN becomes NULL: SQLite has no NaN
  int bind(int index, std::string_view value);  // must live until the statement is reset
  int bind(int index, std::optional<std::string_view> value);  // the same
  int bind_cell(int index, const Cell& value);                 // the same
  Error bind_error(int code) const;

  // The value of parameter `index`, if it is an integer or NULL; `unknown` before it was bound.
  struct Bound {
    enum class Kind : std::uint8_t { unknown, integer, null };
    std::int64_t value = 0;
    Kind kind = Kind::unknown;
    bool operator==(const Bound&) const = default;
  };
  template <typename Bind>
  int bind_unless_held(int index, const Bound& bound, Bind&& bind);
  void forget_bound(int index);

  std::string path_;
  std::vector<Bound> bound_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Connection {
 public:
  enum class Mode { create, write, read };
  static Result<Connection> open(const std::string& path, Mode mode);

  Status execute(const std::string& sql);  // one or several statements without parameters
  Result<Statement> prepare(std::string_view sql);
  // Refused where the text has a second statement: nobody would run it.
  Result<Statement> prepare_alone(std::string_view sql);
  Result<std::int64_t> query_int64(std::string_view sql);
  Result<std::string> query_text(std::string_view sql);

  // `change` as one transaction: all of it or nothing.
  template <typename Change>
  Status transaction(Change&& change) {
    RETURN_IF_ERROR(execute("BEGIN"));
    Status status = change();
    if (status.ok()) status = execute("COMMIT");
    if (!status.ok()) roll_back();
    return status;
  }

  void set_busy_timeout_ms(int timeout_ms);
  // A running statement ends with ErrorCode::cancelled once `stops` says so. It is asked every few
  // thousand of SQLite's instructions, by the connection's thread; {}: nobody is asked.
  void end_if(Stops stops);
  // From now on a statement that is more than a question is refused when it is prepared: SELECT
  // over tables and views, functions but for load_extension, no PRAGMA, ATTACH or transaction.
  Status allow_questions_only();
  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
    std::string without_log;  // a file that is read, and had no log beside it; empty: another
  };
  Connection(std::string path, sqlite3* database);
  Status distrust(Mode mode);
  void roll_back();

  std::string path_;
  std::unique_ptr<Stops> stops_;  // SQLite has its address
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace sluice::rundb::detail
