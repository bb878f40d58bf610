#include "storage/rundb/completeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "storage/rundb/detail/read_connection.h"
#include "storage/rundb/detail/sql_texts.h"
#include "storage/rundb/query.h"

namespace sluice::rundb {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLargest = std::int64_t{1} << 60;

// Ids from the first to the last, and how many of them have rows.
struct IdRange {
  std::int64_t first = kNone;  // kNone: the table is empty
  std::int64_t last = kNone;
  std::int64_t count = 0;

  bool is_empty() const { return first == kNone; }
  std::int64_t length() const { return is_empty() ? 0 : last - first + 1; }
};

// The integers of the one row that a text of reads.sql answers; NULL is kNone.
Result<std::vector<std::int64_t>> integers_of(Reader& reader, std::string_view name) {
  std::vector<std::int64_t> integers;
  RETURN_IF_ERROR(Query(reader).each_row(
      std::string(detail::read_sql(name)), [&integers](std::span<const Cell> row) {
        for (const Cell& cell : row) {
          const auto* integer = std::get_if<std::int64_t>(&cell);
          integers.push_back(integer == nullptr ? kNone : *integer);
          // Their differences have to fit.
          if (integer != nullptr && (*integer < 0 || *integer > kLargest)) {
            return Status(
                make_error(ErrorCode::corrupt, "an id or a number of rows is {}", *integer));
          }
        }
        return ok_status();
      }));
  return integers;
}

Result<IdRange> range_of(Reader& reader, std::string_view name) {
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> row, integers_of(reader, name));
  return row[0] == kNone ? IdRange{} : IdRange{row[0], row[1], row[2]};
}

// Removing what is old (Retention) leaves the batch that it cuts with the ids of all its spans, so
// the first id is told by the other two while they have any.
Status look_at_operations(Reader& reader, std::int64_t counted_max, Completeness& found) {
  ASSIGN_OR_RETURN(const IdRange runs, range_of(reader, "ids_of_runs"));
  ASSIGN_OR_RETURN(const IdRange batches, range_of(reader, "ids_of_batches"));
  ASSIGN_OR_RETURN(IdRange spans, range_of(reader, "ids_of_spans"));
  const std::int64_t last = std::max({spans.last, runs.last, batches.last});
  if (last == kNone) return ok_status();
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const IdRange& range : {spans, runs}) {
    if (!range.is_empty()) first = std::min(first, range.first);
  }
  if (spans.is_empty() && runs.is_empty()) first = batches.first;
  found.operations_recorded = last - first + 1;
  found.are_rows_counted = found.operations_recorded <= counted_max;
  if (found.are_rows_counted) {
    ASSIGN_OR_RETURN(const std::vector<std::int64_t> count, integers_of(reader, "span_count"));
    spans.count = count[0];
  } else {
    spans.count = spans.length();
  }
  const std::int64_t outside_batches =
      batches.is_empty() ? found.operations_recorded
                         : batches.length() - batches.count + last - batches.last +
                               std::max<std::int64_t>(0, batches.first - first);
  found.operations_missing = std::max({found.operations_recorded - spans.count,
                                       found.operations_recorded - runs.count, outside_batches});
  return ok_status();
}

Status look_at_steps(Reader& reader, Completeness& found) {
  ASSIGN_OR_RETURN(const IdRange steps, range_of(reader, "ids_of_steps"));
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> counted, integers_of(reader, "steps_counted"));
  // The steps of the first and the last operations: NULL where none belongs to a step.
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> named, integers_of(reader, "steps_named"));
  if (!steps.is_empty()) {
    const std::int64_t gaps = steps.length() - steps.count;
    if (gaps <= steps.count) found.steps_missing = std::max<std::int64_t>(0, gaps - counted[0]);
    if (named[0] != kNone) found.steps_missing += std::max<std::int64_t>(0, steps.first - named[0]);
  }
  // The step that goes on has operations and no row yet.
  const std::int64_t last = steps.is_empty() ? (named[0] == kNone ? 0 : named[0]) - 1 : steps.last;
  if (named[1] != kNone && named[1] > last + 1) found.steps_missing += named[1] - last - 1;
  return ok_status();
}

}  // namespace

std::string Completeness::missing_words() const {
  std::string words;
  if (operations_missing > 0) {
    words = fmt::format("{} of {} operations", operations_missing, operations_recorded);
  }
  if (steps_missing > 0) {
    words += fmt::format("{}{} step{}", words.empty() ? "" : ", ", steps_missing,
                         steps_missing == 1 ? "" : "s");
  }
  return words;
}

Result<Completeness> completeness_of(Reader& reader, std::int64_t counted_max) {
  Completeness found;
  RETURN_IF_ERROR(look_at_operations(reader, counted_max, found));
  RETURN_IF_ERROR(look_at_steps(reader, found));
  return found;
}

}  // namespace sluice::rundb
