#pragma once
// The expected gain of a change, before it is made: simulated on the platform that is fitted to the
// run's steps (core/tune).
//
// Thread contract: free function, not the frame thread; it reads the database, and takes as long as
// the simulation does.

#include <cstdint>
#include <string>
#include <vector>

#include "base/stops.h"
#include "core/control/knob.h"
#include "profiler/analyze/turn_next.h"

namespace sluice::gui {

enum class Question : std::uint8_t {
  suggest,  // every setting by itself, and the best of several knobs together
  what_if,  // these settings, "key=value", together
  tune,     // a whole proposal; the settings are keys to be left as they are
  knobs,    // what a run that is over had
  count_
};
inline constexpr std::size_t kQuestions = static_cast<std::size_t>(Question::count_);

struct Advice {
  std::uint64_t number = 0;             // of the question
  std::vector<std::string> settings;    // that were asked with
  analyze::PredictedChanges predicted;  // of what_if and tune: at most one, in `each`
  std::vector<control::Knob> knobs;     // of knobs
  std::string problem;                  // not empty: why there is no advice
};

// The answer, or the problem in its place; `number` and `settings` are the caller's. `stops` is
// asked before each simulated step.
Advice advice_on(const std::string& database, Question question,
                 const std::vector<std::string>& settings, const Stops& stops);

}  // namespace sluice::gui
