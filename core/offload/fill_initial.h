#pragma once
// The initial values of a state that is made.
//
// Thread contract: called on workers, one subgroup at a time each.

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"

namespace sluice::offload {

// Fills `out` with the initial values of the flat parameters from `first` on. An error ends the
// creation of the state.
using FillInitial = std::function<Status(std::int64_t first, std::span<float> out)>;

}  // namespace sluice::offload
