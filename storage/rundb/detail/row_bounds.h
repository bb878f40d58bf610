#pragma once
// The values that a row of a run database can hold. The tables are STRICT, but any program can
// write any number into them. A column's bound stands in its declaration
// (storage/rundb/detail/tables.h); here is what holds between the columns of a row.
//
// Thread contract: free functions.

#include <cstdint>
#include <tuple>

#include "storage/rundb/detail/tables.h"
#include "storage/rundb/lod.h"
#include "storage/rundb/rows.h"

namespace sluice::rundb::detail {

template <typename Row>
constexpr bool is_consistent(const Row& /*row*/) {
  return true;
}
constexpr bool is_consistent(const LongSpanRow& row) {
  return row.level >= 0 && row.level < kLodLevels && row.end_ts >= row.ts;
}
constexpr bool is_consistent(const LodRow& row) {
  if (row.level < 0 || row.level >= kLodLevels) return false;
  const std::int64_t bin_max = kAmountMax >> lod_shift(row.level);
  return row.bin >= -bin_max && row.bin <= bin_max;
}

constexpr bool is_consistent(const SpanRunRow& row) {
  return row.first_id >= 0 && row.last_id >= row.first_id;
}

constexpr bool is_consistent(const ProcessorTimeRow& row) {
  return row.running <= row.dur && row.preempted <= row.dur && row.waiting <= row.dur;
}
// Callers come before those that they call, so that a chain has an end.
constexpr bool is_consistent(const CallRow& row) { return row.caller_id < row.id; }

template <typename Row>
constexpr bool is_within_bounds(const Row& row) {
  const auto are_good = [&row](const auto&... columns) { return (columns.is_good(row) && ...); };
  return std::apply(are_good, kTable<Row>.columns) && is_consistent(row);
}

}  // namespace sluice::rundb::detail
