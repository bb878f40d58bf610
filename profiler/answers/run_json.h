#pragma once
// A run's answer as JSON: what `sluice show --json` prints (docs/recording.md).
//
// Thread contract: free function.

#include "profiler/answers/record_json.h"
#include "profiler/answers/run_answer.h"

namespace sluice::answers {

Json to_json(const RunAnswer& run);

}  // namespace sluice::answers
