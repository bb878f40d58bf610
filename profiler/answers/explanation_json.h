#pragma once
// A step's explanation as JSON: one form for `sluice show --step --json`, the page and `sluice
// mcp`.
//
// Thread contract: free function.

#include "profiler/analyze/step_explanation.h"
#include "profiler/answers/record_json.h"

namespace sluice::answers {

// {first_step, last_step, step_count, words, dur, usual_dur (null: there is none), noise,
// usual_count, usual_steps, is_beyond_noise, notes, causes: [{cause, label, ns, usual_ns, more_ns,
// is_within_noise, words, reason (null: none): {kind, words, operation, track, device, link, rank,
// times, bytes, usual_bytes, spans}}], why_unknown, why_no_usual}. What is none is null.
Json to_json(const analyze::StepExplanation& explanation);

}  // namespace sluice::answers
