#pragma once
// Rows of table span in what Reader::each_row gives.
//
// Thread contract: free functions.

#include <span>

#include "gui/data/cells.h"
#include "storage/rundb/rows.h"

namespace sluice::gui {

// What span_of() reads, in its order.
inline constexpr const char* kSpanColumns =
    "span.id, span.track_id, span.name_id, span.submit_ts, span.ts, span.dur, span.step_id, "
    "span.subgroup_id, span.device_id, span.layer_id, span.bytes, span.padding_bytes, span.status";

inline rundb::SpanRow span_of(std::span<const rundb::Cell> row) {
  return {.id = integer_of(row[0]),
          .track_id = integer_of(row[1]),
          .name_id = integer_of(row[2]),
          .submit_ts = integer_of(row[3]),
          .ts = integer_of(row[4]),
          .dur = integer_of(row[5]),
          .step_id = integer_of(row[6], -1),
          .subgroup_id = integer_of(row[7], -1),
          .device_id = integer_of(row[8], -1),
          .layer_id = integer_of(row[9], -1),
          .bytes = integer_of(row[10]),
          .padding_bytes = integer_of(row[11]),
          .status = static_cast<rundb::SpanStatus>(integer_of(row[12]))};
}

}  // namespace sluice::gui
