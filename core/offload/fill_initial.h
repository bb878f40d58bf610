#pragma once
// The initial values of a state that is made.
//
// Thread contract: called on workers, one subgroup at a time each.

#include <cstdint>
#include <functional>
#include <span>

#include "base/status.h"

namespace sluice::offload {

// Fills `out`, which has zeros, with the initial values of a variable's flat array from `first` on:
// variable 0 is the master weights, and the others are the optimizer's, in its order. An error ends
// the creation of the state.
using FillInitial =
    std::function<Status(std::int32_t variable, std::int64_t first, std::span<float> out)>;

}  // namespace sluice::offload
