#pragma once
// Two runs compared, as JSON.
//
// Thread contract: free functions.

#include "profiler/analyze/comparison.h"
#include "profiler/answers/record_json.h"

namespace sluice::answers {

// {comparable, mismatches, same, unknown, cautions}
Json to_json(const analyze::Comparability& comparability);
// {a, b, change, noise, is_more_than_noise}
Json to_json(const analyze::ComparedFigure& figure);
// {KEY: {a, b}, ...}
Json differences_json(std::span<const analyze::SettingDifference> differences);
// {comparability, verdict, steps, figures, differences, answers}
Json to_json(const analyze::Comparison& comparison);

}  // namespace sluice::answers
