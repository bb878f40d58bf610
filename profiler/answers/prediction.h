#pragma once
// The effect of settings on a recorded run: the answer, for whoever prints it.
//
// Thread contract: plain data and a free function.

#include <string>

#include "profiler/analyze/turn_next.h"
#include "profiler/answers/record_json.h"

namespace sluice::answers {

// Which settings were asked about.
enum class Asked : std::uint8_t { these, every };

struct PredictedRun {
  std::string run;  // its name
  double recorded_seconds = 0;
  double simulated_seconds = 0;       // without any change
  analyze::PredictedChanges changes;  // of Asked::these that change alone, in `each`
  Asked asked = Asked::every;
};

// {run, fit_error, recorded_seconds, simulated_seconds, simulated_count, caution, predictions,
// together (of Asked::every; null: none), unavailable, answers}; without the figures where nothing
// could be predicted.
Json to_json(const PredictedRun& predicted);

}  // namespace sluice::answers
