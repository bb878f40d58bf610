#pragma once
// Rotary positions: each pair of values (i, i + head_dim / 2) of a query or a key is turned by an
// angle of its position.
//
// Thread contract: the compute thread.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/model/model_shape.h"
#include "core/model/window_shape.h"

namespace sluice::model {

// Cosine and sine, (sequence, head_dim / 2), of position x frequency, each times the factor that
// queries and keys have (core/model/rotary_frequencies.h).
struct Angles {
  at::Tensor cosine;
  at::Tensor sine;
};
Angles rotary_angles(std::int64_t sequence, std::int64_t head_dim, const Rotary& rotary,
                     const at::TensorOptions& like);

// `rows` (tokens, heads x head_dim), turned, of the same shape. Backward needs the angles alone.
at::Tensor turned(const at::Tensor& rows, const Angles& angles, WindowShape window);

}  // namespace sluice::model
