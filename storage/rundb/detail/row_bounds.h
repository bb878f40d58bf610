#pragma once
// What a row of a run database can hold. The tables are STRICT, but any program can write any
// number into them; within these bounds the sums and differences that readers make stay within 64
// bits, and ids fit the types that they become.
//
// Thread contract: free functions.

#include <cstdint>
#include <limits>

#include "storage/rundb/reader.h"

namespace sluice::rundb::detail {

inline constexpr std::int64_t kAmountMax = std::int64_t{1} << 60;  // 36 years in ns; 1 EB

constexpr bool is_amount(std::int64_t value) { return value >= 0 && value <= kAmountMax; }
constexpr bool is_time(TimeNs ts) { return ts >= -kAmountMax && ts <= kAmountMax; }
constexpr bool is_number(std::int64_t id) {
  return id >= std::numeric_limits<std::int32_t>::min() &&
         id <= std::numeric_limits<std::int32_t>::max();
}

// The table of a row that is out of bounds; null if it is within, or has no numbers.
template <typename Row>
constexpr const char* out_of_bounds(const Row& /*row*/) {
  return nullptr;
}
constexpr const char* out_of_bounds(const SpanRow& row) {
  const bool is_good = is_time(row.submit_ts) && is_time(row.ts) && is_amount(row.dur) &&
                       is_number(row.step_id) && is_number(row.subgroup_id) &&
                       is_number(row.device_id) && is_number(row.layer_id) &&
                       is_amount(row.bytes) && is_amount(row.padding_bytes);
  return is_good ? nullptr : "span";
}
constexpr const char* out_of_bounds(const StepRow& row) {
  const bool is_good =
      is_number(row.id) && is_time(row.ts) && is_amount(row.dur) && is_amount(row.tokens);
  return is_good ? nullptr : "step";
}
constexpr const char* out_of_bounds(const KnobChangeRow& row) {
  return is_time(row.ts) && is_number(row.step_id) ? nullptr : "knob_change";
}
constexpr const char* out_of_bounds(const ModeRow& row) {
  return is_time(row.ts) && is_number(row.step_id) ? nullptr : "mode";
}
constexpr const char* out_of_bounds(const DeviceRow& row) {
  const bool is_good =
      is_number(row.id) && is_amount(row.memory_bytes) && is_amount(row.capacity_bytes);
  return is_good ? nullptr : "device";
}
constexpr const char* out_of_bounds(const LinkRow& row) {
  return is_number(row.id) && is_amount(row.latency_ns) ? nullptr : "link";
}
constexpr const char* out_of_bounds(const CounterRow& row) {
  return is_time(row.ts) ? nullptr : "counter";
}
constexpr const char* out_of_bounds(const LongSpanRow& row) {
  const bool is_good = row.level >= 0 && row.level < kLodLevels && is_time(row.ts) &&
                       is_time(row.end_ts) && row.end_ts >= row.ts;
  return is_good ? nullptr : "long_span";
}
constexpr const char* out_of_bounds(const LodRow& row) {
  if (row.level < 0 || row.level >= kLodLevels) return "lod";
  const std::int64_t bin_max = kAmountMax >> lod_shift(row.level);
  const bool is_good = row.bin >= -bin_max && row.bin <= bin_max && is_amount(row.count) &&
                       is_amount(row.busy_ns) && is_amount(row.longest_ns);
  return is_good ? nullptr : "lod";
}
constexpr const char* out_of_bounds(const NamedSpan& named) { return out_of_bounds(named.row); }

}  // namespace sluice::rundb::detail
