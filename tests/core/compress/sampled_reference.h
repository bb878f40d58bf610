#pragma once
// The definition of a sampled selection, element by element, as core/compress/sampled_top_k.h words
// it.

#include <span>

#include "core/compress/sampled_top_k.h"

namespace sluice::compress {

SampledSelection sampled_top_k_reference(std::span<const float> values,
                                         const SampleOptions& options, const KeptRoom& room);

}  // namespace sluice::compress
