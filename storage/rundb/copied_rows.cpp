#include "storage/rundb/copied_rows.h"

#include <algorithm>
#include <utility>

#include "storage/rundb/detail/row_bytes.h"
#include "storage/rundb/detail/schema.h"

namespace sluice::rundb {
namespace {

using detail::ByteSource;

// Whole numbers that a row has and its columns do not bound.
template <typename Row>
bool is_of_a_run(const Row& /*row*/) {
  return true;
}
bool is_of_a_run(const SpanRow& row) { return row.status <= SpanStatus::cancelled; }

template <typename Row>
Result<CopiedRows> decoded(std::string_view bytes) {
  ByteSource source(bytes);
  detail::RowDecoder<Row> decoder;
  std::vector<Row> rows;
  while (!source.is_empty()) {
    if (rows.size() == kPieceRowsMax) {
      return make_error(ErrorCode::corrupt, "a piece of table {} has more than {} rows",
                        kTable<Row>.name, kPieceRowsMax);
    }
    Row row;
    if (!decoder.take(source, row) || !is_of_a_run(row)) {
      return make_error(ErrorCode::corrupt,
                        "row {} of a piece of table {} is cut, or has a time, size, id or word "
                        "that no run has",
                        rows.size(), kTable<Row>.name);
    }
    rows.push_back(std::move(row));
  }
  return CopiedRows(std::move(rows));
}

template <std::size_t kTableIndex>
using RowOf = typename std::variant_alternative_t<kTableIndex, CopiedRows>::value_type;

template <std::size_t... kAt>
constexpr auto names_of(std::index_sequence<kAt...> /*tables*/) {
  return std::array{kTable<RowOf<kAt>>.name...};
}
template <std::size_t... kAt>
constexpr auto decoders_of(std::index_sequence<kAt...> /*tables*/) {
  return std::array{&decoded<RowOf<kAt>>...};
}
constexpr auto kAllTables = std::make_index_sequence<kCopiedTables>();

static_assert(names_of(kAllTables)[kFirstGrowing] == "string");
constexpr std::size_t kSampledThreads = kFirstGrowing - 1;
constexpr std::size_t kFirstOfSamples = kCopiedTables - 4;
static_assert(names_of(kAllTables)[kSampledThreads] == "sampled_thread");
static_assert(names_of(kAllTables)[kFirstOfSamples] == "sampled_function");

}  // namespace

std::string_view copied_table_name(std::size_t table) { return names_of(kAllTables)[table]; }

bool is_sample_table(std::size_t table) {
  return table == kSampledThreads || table >= kFirstOfSamples;
}

std::int64_t schema_version() { return detail::kSchemaVersion; }

Result<CopiedRows> rows_of(const CopiedPiece& piece) {
  if (piece.table >= kCopiedTables)
    return make_error(ErrorCode::corrupt, "rows of table number {}, and there is none",
                      piece.table);
  return decoders_of(kAllTables)[piece.table](piece.bytes);
}

std::array<std::int64_t, kCursorNumbers> numbers_of(const CopyCursor& cursor) {
  std::array<std::int64_t, kCursorNumbers> numbers = {cursor.run,
                                                      cursor.stretches,
                                                      cursor.string_id,
                                                      cursor.track_id,
                                                      cursor.span_id,
                                                      cursor.counter_rowid,
                                                      cursor.step_id,
                                                      cursor.step_count,
                                                      cursor.step_sum,
                                                      cursor.late_flows,
                                                      cursor.sampled_function_id,
                                                      cursor.call_id,
                                                      cursor.call_sample_rowid,
                                                      cursor.processor_time_rowid};
  std::ranges::copy(cursor.whole, numbers.end() - kFirstGrowing);
  return numbers;
}

std::optional<CopyCursor> cursor_of(std::span<const std::int64_t> numbers) {
  if (numbers.size() != kCursorNumbers) return std::nullopt;
  CopyCursor cursor{.run = numbers[0],
                    .stretches = numbers[1],
                    .string_id = numbers[2],
                    .track_id = numbers[3],
                    .span_id = numbers[4],
                    .counter_rowid = numbers[5],
                    .step_id = numbers[6],
                    .step_count = numbers[7],
                    .step_sum = numbers[8],
                    .late_flows = numbers[9],
                    .sampled_function_id = numbers[10],
                    .call_id = numbers[11],
                    .call_sample_rowid = numbers[12],
                    .processor_time_rowid = numbers[13]};
  std::ranges::copy(numbers.last(kFirstGrowing), cursor.whole.begin());
  return cursor;
}

}  // namespace sluice::rundb
