#pragma once
// In which pieces products of 16-bit numbers are made in fp32, where the processor does not
// multiply 16-bit numbers (core/model/torch/products.h): what they take is bounded, and plans know
// it without libtorch.
//
// Thread contract: free functions, any thread.

#include <cstdint>

#include "core/model/window_shape.h"

namespace sluice::model {

// The bytes that a thread that computes widened products keeps for their pieces.
inline constexpr std::int64_t kWidenedBytes = 3 * (4 << 20);

// Windows whose attention is widened together: as many as kWidenedBytes have room for, at least
// one.
std::int64_t widened_windows(WindowShape window, std::int64_t hidden);

// The tensors that a widened attention has in fp32 at once, in backward: query, key, value, the
// result, its gradient and theirs.
std::int64_t widened_attention_bytes(WindowShape window, std::int64_t hidden);

}  // namespace sluice::model
