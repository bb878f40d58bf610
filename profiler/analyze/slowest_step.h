#pragma once
// The step of a run that took longest beside others with its settings, and what it spent that on:
// it is named whether or not it stands out of the noise, which is said apart.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "profiler/analyze/cause.h"
#include "profiler/analyze/critical_path.h"
#include "storage/rundb/rows.h"

namespace sluice::analyze {

struct CauseBeside {
  Cause cause = Cause::other;
  TimeNs ns = 0;
  TimeNs typical_ns = 0;  // in the step beside it
};

struct SlowestStep {
  std::int64_t step = 0;
  TimeNs dur = 0;
  std::int64_t typical_step = 0;  // the nearest to the median of those with its settings
  TimeNs typical_dur = 0;
  bool is_beyond_noise = false;
  // The causes that took more of it, the most first, a few; none where operations do not say it.
  std::vector<CauseBeside> more = {};

  // "forward and backward 5.90 s instead of 3.10 s, the commit 900 ms instead of 400 ms"; "" as
  // above.
  std::string causes_words() const;
  // "step 20 took 7.10 s, 3.60 s more than step 31, the median: ...; within the noise"
  std::string words() const;
};

// Where it stands among the steps, and the one beside it.
struct SlowestPlace {
  std::size_t slowest = 0;
  std::size_t typical = 0;
};

// `borders`: indices at which settings or step times changed, in order. `unsettled`: whether a step
// counts for neither. None: no stretch has three steps, or all take the same.
std::optional<SlowestPlace> slowest_of(std::span<const rundb::StepRow> steps,
                                       std::span<const std::size_t> borders,
                                       const std::vector<bool>& unsettled);

// By cause, of two steps: what `slow` spent more.
std::vector<CauseBeside> more_than(const StepVerdict& slow, const StepVerdict& typical);

}  // namespace sluice::analyze
