#pragma once
// How fast the pairs of values of a head turn with the position: rotary positions, and the rules by
// which models stretch them to contexts longer than those they were first trained with.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::model {

// f_i of each pair, head_width / 2 of them.
std::vector<double> rotary_frequencies(const Rotary& rotary, std::int64_t head_width);
// The factor that queries and keys have besides; 1 but for yarn.
double rotary_attention_factor(const Rotary& rotary);

}  // namespace sluice::model
