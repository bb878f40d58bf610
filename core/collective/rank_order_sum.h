#pragma once
// The sum of what the ranks of a group give, which is defined once: element by element
// ((x0 + x1) + x2) + ..., in the order of the group's ranks, in fp32 (fp64 of fp64), rounded once
// to the type at the end. It depends on neither timing nor tree, nor on how many elements were sent
// at once. A NaN stays a NaN; which one is not defined.
//
// Thread contract: free functions, any thread.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/collective/call.h"

namespace sluice::collective {

// inputs[r]: `count` elements of the r-th rank. `out` may be one of them, and overlaps no other.
// `type` is not bytes.
void sum_in_rank_order(ElementType type, std::span<const std::byte* const> inputs, std::byte* out,
                       std::int64_t count);

}  // namespace sluice::collective
