#pragma once
// Parts of answers about a record, as JSON: the one form of each, for commands, pages and whoever
// asks next. Times are nanoseconds where no key says seconds; steps are counted from 1.
//
// Thread contract: free functions.

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "profiler/analyze/answer.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/doubts.h"
#include "profiler/analyze/lateness.h"
#include "profiler/analyze/stretches.h"
#include "profiler/analyze/turn_next.h"
#include "storage/rundb/rows.h"

namespace sluice::answers {

using Json = nlohmann::ordered_json;

const char* direction_name(rundb::Direction direction);  // "read", "write"

// [{"of": "slow steps", "outcome": "nothing found", "why": "58 steps"}, ...]
Json answers_json(std::span<const analyze::Answer> answers);
// The losses of the record: [{name, value, description}, ...]
Json losses_json(std::span<const rundb::StatRow> losses);
// [{step, knob, old, new, who}, ...]
Json knob_changes_json(std::span<const rundb::KnobChangeRow> changes);
// By the name of each cause.
Json shares_json(const std::array<double, analyze::kCauseCount>& shares);
// [{first_step, last_step, settings, steps, dur, noise, host_link, speed_up, ...}, ...]
Json stretches_json(std::span<const analyze::Stretch> stretches);
// null where no emulated clock measured.
Json lateness_json(const analyze::Lateness& lateness);
// [{mark, sentence}, ...] (profiler/analyze/doubts.h)
Json doubts_json(const analyze::RunAnalysis& analysis);
// {settings, from, seconds, change, why, needs_new_run}
Json change_json(const analyze::PredictedChange& change);

}  // namespace sluice::answers
