#pragma once
// The work of the processors in the explained steps, as samples say (docs/sampling.md), in Details.
//
// Thread contract: the frame thread.

#include "profiler/analyze/sampled_time.h"

namespace sluice::gui {

void draw_processor_samples(const analyze::SampledTime& time);

}  // namespace sluice::gui
