#pragma once
// The bytes that a step moves, from the last few steps of a record: their operations alone are
// read, and how many these are is known before.
//
// Thread contract: a free function that uses its reader.

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "profiler/analyze/run_data.h"
#include "storage/rundb/reader.h"

namespace sluice::runs {

// Payload and padding, as links carried them; means.
struct StepBytes {
  double drive_read = 0;  // out of all drives
  double drive_write = 0;
  double link_read = 0;  // over the links that devices share, not those between ranks: to the host
  double link_write = 0;
  std::int64_t steps = 0;  // that it is the mean of
};

inline constexpr std::int64_t kSampledSteps = 8;

struct SampledBytes {
  std::optional<StepBytes> bytes;       // none: no operation is recorded, or see below
  std::int64_t operations_refused = 0;  // as many would have to be read for one step: too many
};

// `steady`: the steps in question, in order. The last one counts where it is the only one: what it
// moved may not all be recorded yet. At most `operations_max` operations are read.
Result<SampledBytes> sampled_bytes(rundb::Reader& reader, const analyze::RunInfo& info,
                                   std::span<const rundb::StepRow> steady,
                                   std::int64_t operations_max);

}  // namespace sluice::runs
