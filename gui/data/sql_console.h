#pragma once
// Questions in SQL, answered by a thread of their own: SQLite may be busy for minutes, and neither
// the window nor the rest of its data waits for that.
//
// Thread contract: ask() and answer() from the frame thread. Destroying the console does not wait
// for a question that is being worked on; its thread then ends with the process.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gui/data/published.h"

namespace sluice::gui {

struct SqlAnswer {
  std::uint64_t number = 0;  // of the question
  std::string sql;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  // at most kSqlRowsMax
  bool is_cut = false;
  double seconds = 0;
  std::string problem;
};
inline constexpr std::size_t kSqlRowsMax = 2'000;

// A table or view that can be asked.
struct SqlTable {
  std::string name;
  std::string columns;  // "id, ts, dur"
  bool is_view = false;
};

class SqlConsole {
 public:
  SqlConsole(std::string database_path, std::function<void()> wake);
  ~SqlConsole();

  // Its number. While one is worked on, a further one waits; the last of several waiting counts.
  std::uint64_t ask(std::string sql);
  std::shared_ptr<const SqlAnswer> answer() const;
  bool is_working() const;
  // Tables first, by name; null: they have not been read yet, which this asks for.
  std::shared_ptr<const std::vector<SqlTable>> tables();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::gui
