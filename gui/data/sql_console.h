#pragma once
// Questions in SQL, answered by a thread of their own: SQLite may be busy for minutes, and neither
// the window nor the rest of its data waits for that. A question may have no end: it is worked on
// until it is stopped, another takes its place or its time is up.
//
// Thread contract: ask(), stop() and answer() from the frame thread. Destroying the console stops
// the question that is being worked on, and does not wait for it.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "gui/data/published.h"

namespace sluice::gui {

// A row's place in time.
struct SqlPiece {
  TimeNs ts = 0;
  TimeNs dur = 0;  // 0: an instant
  std::size_t row = 0;
};

struct SqlAnswer {
  std::uint64_t number = 0;  // of the question
  std::string sql;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // at most kSqlRowsMax
  std::optional<std::size_t> span_column;      // whose values are ids of spans; none: no column's
  // Rows that have a time, by time: what their columns `ts` and `dur` say, else of the span whose
  // id they have.
  std::vector<SqlPiece> pieces;
  bool is_cut = false;
  double seconds = 0;
  std::string problem;

  // The id in the span column; none: there is no such column, or NULL in it.
  std::optional<std::int64_t> span_id_of(std::size_t row) const;
};
inline constexpr std::size_t kSqlRowsMax = 2'000;
inline constexpr std::chrono::seconds kSqlTimeMax{300};

// A table or view that can be asked.
struct SqlTable {
  std::string name;
  std::string columns;  // "id, ts, dur"
  bool is_view = false;
};

class SqlConsole {
 public:
  SqlConsole(std::string database_path, std::function<void()> wake,
             std::chrono::seconds time_max = kSqlTimeMax);
  ~SqlConsole();

  // Its number. One that is being worked on is stopped, and gets no answer.
  std::uint64_t ask(std::string sql);
  // The query under way is answered with that.
  void stop();
  std::shared_ptr<const SqlAnswer> answer() const;
  bool is_working() const;
  // Tables first, by name; null: they have not been read yet, which this asks for.
  std::shared_ptr<const std::vector<SqlTable>> tables();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::gui
