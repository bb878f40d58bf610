#pragma once
// The memory traffic of one AdamW update with (almost) no arithmetic: the bound that the update is
// measured against.

#include "core/optimizer/update_rule.h"

namespace sluice::bench {

// Reads the three state arrays and the fp32 gradient, writes the state and the 16-bit copy, as
// vectors of the same width as the update's and with the same kind of stores. The values change by
// an integer operation. The element count is a multiple of 32 and the 16-bit copy aligned to 64
// bytes.
void touch_streams(const optimizer::UpdateArrays& arrays);

}  // namespace sluice::bench
