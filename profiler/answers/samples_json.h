#pragma once
// What the processor samples say of a stretch of a run, as JSON: `sluice show --samples --json`.
//
// Thread contract: free function.

#include "profiler/analyze/sampled_time.h"
#include "profiler/answers/record_json.h"

namespace sluice::answers {

// {first_step, last_step (null: all of the record), dur, sample_count, lost_count, running_ns,
// shares: {running, preempted, waiting}, thread_count, threads: [{name, tid, dur, shares,
// sample_count}], by_self: [{name, library, self_count, self_share, total_count, total_share,
// uncertainty}], by_total: the same, stages: [{name, threads (null: all),
// sample_count, by_self, by_total}], why_none}.
// The uncertainty is that of the share by which the list is sorted.
Json to_json(const analyze::SampledTime& time);

}  // namespace sluice::answers
