#include "gui/data/sql_console.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "gui/data/cells.h"
#include "gui/data/detail/sql_pieces.h"
#include "storage/rundb/query.h"
#include "storage/rundb/reader.h"

namespace sluice::gui {

// Held by the console and by its thread, whichever lasts longer.
struct SqlConsole::Shared {
  // Why question `number` is not to be worked on any longer; empty: it is.
  std::string reason_to_end(std::uint64_t number, std::chrono::steady_clock::time_point begin) {
    const MutexLock lock(mutex);
    if (is_over || asked != number || stopped >= number) return "Stopped.";
    if (std::chrono::steady_clock::now() - begin < time_max) return "";
    return fmt::format("Stopped after {} seconds, the longest that a question may take here.",
                       time_max.count());
  }

  std::string path;
  std::function<void()> wake;
  std::chrono::seconds time_max{};
  Published<SqlAnswer> answer;
  Published<std::vector<SqlTable>> tables;
  Mutex mutex;
  CondVar changed;
  std::string question GUARDED_BY(mutex);
  std::uint64_t asked GUARDED_BY(mutex) = 0;
  std::uint64_t taken GUARDED_BY(mutex) = 0;
  std::uint64_t stopped GUARDED_BY(mutex) = 0;  // this question and those before it
  bool wants_tables GUARDED_BY(mutex) = false;
  bool is_working GUARDED_BY(mutex) = false;
  bool is_over GUARDED_BY(mutex) = false;
};

namespace {

std::string shown(const rundb::Cell& cell) {
  if (std::holds_alternative<std::monostate>(cell)) return "NULL";
  if (const auto* value = std::get_if<double>(&cell)) return fmt::format("{}", *value);
  return text_of(cell);
}

// The reader's query() takes all rows; a window shows some, and the rest must not fill the memory.
Status run_question(rundb::Reader& reader, SqlAnswer& answer) {
  const Error enough(ErrorCode::cancelled, "enough rows");
  const Status status = rundb::Query(reader).each_row(
      answer.sql, [&answer, &enough](std::span<const rundb::Cell> row) -> Status {
        if (answer.rows.size() == kSqlRowsMax) {
          answer.is_cut = true;
          return enough;
        }
        std::vector<std::string>& line = answer.rows.emplace_back();
        for (const rundb::Cell& cell : row) line.push_back(shown(cell));
        return ok_status();
      });
  if (answer.is_cut) return ok_status();
  return status;
}

bool is_span_id(const std::string& origin) {
  constexpr std::array<std::string_view, 6> kIds = {"span.id",           "span.parent_id",
                                                    "flow.to_span",      "flow.from_span",
                                                    "long_span.span_id", "span_run.first_id"};
  return std::ranges::find(kIds, origin) != kIds.end();
}

// each_row() does not name the columns; the statement, asked for no rows, does.
void name_columns(rundb::Reader& reader, SqlAnswer& answer) {
  std::string sql = answer.sql;
  while (!sql.empty() && (sql.back() == ';' || sql.back() == ' ' || sql.back() == '\n'))
    sql.pop_back();
  const Result<rundb::TextTable> table =
      rundb::Query(reader).text_table("SELECT * FROM (" + sql + ") LIMIT 0");
  if (table.ok()) {
    answer.columns = table->columns;
    const auto span = std::ranges::find_if(table->origins, is_span_id);
    if (span != table->origins.end())
      answer.span_column = static_cast<std::size_t>(span - table->origins.begin());
  }
  const std::size_t width = answer.rows.empty() ? 0 : answer.rows.front().size();
  if (answer.columns.size() == width || width == 0) return;
  answer.columns.clear();
  for (std::size_t c = 0; c < width; ++c) answer.columns.push_back(fmt::format("column {}", c + 1));
}

// Which file is asked is known to whoever asks.
std::string without_path(const std::string& path, const std::string& message) {
  const std::string head = path + ": ";
  return message.starts_with(head) ? message.substr(head.size()) : message;
}

std::shared_ptr<const std::vector<SqlTable>> read_tables(const std::string& path) {
  auto tables = std::make_shared<std::vector<SqlTable>>();
  const Result<std::unique_ptr<rundb::Reader>> reader = rundb::Reader::open(path);
  if (!reader.ok()) return nullptr;
  const Status read = rundb::Query(**reader).each_row(
      "SELECT name, type, (SELECT group_concat(name, ', ') FROM pragma_table_info(object.name)) "
      "FROM sqlite_schema AS object WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' "
      "ORDER BY type, name",
      [&tables](std::span<const rundb::Cell> row) {
        tables->push_back({text_of(row[0]), text_of(row[2]), text_of(row[1]) == "view"});
        return ok_status();
      });
  return read.ok() ? tables : nullptr;
}

// `reason_to_end`: empty while it is to be worked on.
std::shared_ptr<const SqlAnswer> worked_out(const std::string& path, std::string sql,
                                            std::uint64_t number,
                                            const std::function<std::string()>& reason_to_end) {
  auto answer = std::make_shared<SqlAnswer>();
  answer->sql = std::move(sql);
  answer->number = number;
  const auto begin = std::chrono::steady_clock::now();
  Result<std::unique_ptr<rundb::Reader>> reader = rundb::Reader::open(path);
  Status status;
  std::string reason;
  if (reader.ok()) {
    rundb::Query(**reader).end_if([&] { return !(reason = reason_to_end()).empty(); });
    status = run_question(**reader, *answer);
    if (status.ok()) name_columns(**reader, *answer);
    if (status.ok()) detail::find_pieces(**reader, *answer);
  } else {
    status = reader.error();
  }
  if (!status.ok()) {
    const bool was_ended = status.error().code() == ErrorCode::cancelled && !reason.empty();
    answer->problem = was_ended ? reason : without_path(path, status.error().message());
  }
  answer->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}

}  // namespace

std::optional<std::int64_t> SqlAnswer::span_id_of(std::size_t row) const {
  return span_column ? whole_number(rows[row][*span_column]) : std::nullopt;
}

SqlConsole::SqlConsole(std::string database_path, std::function<void()> wake,
                       std::chrono::seconds time_max)
    : shared_(std::make_shared<Shared>()) {
  shared_->path = std::move(database_path);
  shared_->wake = std::move(wake);
  shared_->time_max = time_max;
  std::thread([shared = shared_] {
    while (true) {
      std::string question;
      std::uint64_t number = 0;
      bool lists_tables = false;
      {
        const MutexLock lock(shared->mutex);
        while (!shared->is_over && !shared->wants_tables && shared->taken == shared->asked)
          shared->changed.wait(shared->mutex);
        if (shared->is_over) return;
        lists_tables = std::exchange(shared->wants_tables, false);
      }
      if (lists_tables) shared->tables.publish(read_tables(shared->path));
      {
        const MutexLock lock(shared->mutex);
        if (shared->is_over) return;
        if (lists_tables) shared->wake();
        if (shared->taken == shared->asked) continue;
        shared->taken = number = shared->asked;
        shared->is_working = true;
        question = shared->question;
      }
      const auto begin = std::chrono::steady_clock::now();
      auto answer = worked_out(shared->path, std::move(question), number,
                               [&] { return shared->reason_to_end(number, begin); });
      const MutexLock lock(shared->mutex);
      if (shared->is_over) return;  // nobody is left to be woken
      shared->is_working = false;
      if (shared->asked != number) continue;  // another took its place
      shared->answer.publish(std::move(answer));
      shared->wake();
    }
  }).detach();
}

SqlConsole::~SqlConsole() {
  const MutexLock lock(shared_->mutex);
  shared_->is_over = true;
  shared_->changed.notify_all();
}

std::uint64_t SqlConsole::ask(std::string sql) {
  const MutexLock lock(shared_->mutex);
  shared_->question = std::move(sql);
  shared_->asked += 1;
  shared_->changed.notify_all();
  return shared_->asked;
}

void SqlConsole::stop() {
  const MutexLock lock(shared_->mutex);
  shared_->stopped = shared_->asked;
}

std::shared_ptr<const SqlAnswer> SqlConsole::answer() const { return shared_->answer.latest(); }

std::shared_ptr<const std::vector<SqlTable>> SqlConsole::tables() {
  std::shared_ptr<const std::vector<SqlTable>> tables = shared_->tables.latest();
  if (tables != nullptr) return tables;
  const MutexLock lock(shared_->mutex);
  shared_->wants_tables = true;
  shared_->changed.notify_all();
  return tables;
}

bool SqlConsole::is_working() const {
  const MutexLock lock(shared_->mutex);
  return shared_->is_working || shared_->taken != shared_->asked;
}

}  // namespace sluice::gui
