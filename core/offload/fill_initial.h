#pragma once
// The initial values of a state that is made.
//
// Thread contract: called on workers, one subgroup at a time each.

#include <cstdint>
#include <functional>
#include <span>

namespace sluice::offload {

// Fills `out` with the initial values of the flat parameters from `first` on.
using FillInitial = std::function<void(std::int64_t first, std::span<float> out)>;

}  // namespace sluice::offload
