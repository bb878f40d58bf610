#pragma once
// Answers of a run database to SQL of the caller's: what no reader has a verb for. The columns are
// those that the text names; cells come as they stand in the file, within no bounds.
//
// Thread contract: that of its reader (storage/rundb/reader.h), which lives longer.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/stops.h"
#include "storage/rundb/reader.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb {

// A table or a view.
struct TableInfo {
  std::string name;
  bool is_view = false;
  std::vector<std::string> columns;
};

// An answer as text, NULL as "NULL".
struct TextTable {
  std::vector<std::string> columns;
  std::vector<std::string> origins;  // of each column "span.id"; "" where it is worked out
  std::vector<std::vector<std::string>> rows;
};

class Query {
 public:
  using UseRow = std::function<Status(std::span<const Cell>)>;
  using UseColumns = std::function<Status(std::span<const std::string>)>;

  explicit Query(Reader& reader) : file_(reader.file_.get()) {}

  // Whatever is asked of the reader from now on ends with ErrorCode::cancelled once `stops` says
  // so, within milliseconds: SQL of strangers may have no end. {}: no more.
  void end_if(Stops stops);

  // Those of Sluice, by name; what others have added to the file is not among them.
  Result<std::vector<TableInfo>> tables();
  // Any one statement; the connection cannot write.
  Result<TextTable> text_table(const std::string& sql);
  // Each row of any one statement as it comes, so that no answer is too large; an error of
  // `use_row` ends it.
  Status each_row(const std::string& sql, const UseRow& use_row);
  // The same of a stranger's text, whose columns come first. What is more than one question
  // (a second statement, a write, ATTACH, PRAGMA) is refused before anything runs; so it is from
  // now on for all that is asked through the reader.
  Status each_row_of_question(const std::string& sql, const UseColumns& use_columns,
                              const UseRow& use_row);
  // The same as each_row() for a text that is asked again and again, with other parameters ?1, ?2,
  // ...: it is kept, ready to run, as those of the readers are.
  Status each_row_with(std::string_view sql, std::initializer_list<std::int64_t> parameters,
                       const UseRow& use_row);

 private:
  detail::ReadConnection* file_;
};

}  // namespace sluice::rundb
