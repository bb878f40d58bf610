#pragma once
// A learned table of positions, added to the rows of tokens, and its gradient. Documents are taken
// one after the other, so that the order of each sum is the same on every device.
//
// Thread contract: the compute thread; nothing is watched.

#include <ATen/core/Tensor.h>

#include <span>

#include "core/model/window_shape.h"

namespace sluice::model {

// Where positions begin: with each of `documents`, which are all of the batch's tokens in order;
// with each window where there are none. `segments` (tokens): which of two texts a token is of; not
// defined: the first.
struct TokenPlaces {
  WindowShape window;
  std::span<const DocumentPiece> documents = {};
  at::Tensor segments = {};
};

// rows (tokens, hidden) += table (positions, hidden), row 0 where a document or window begins.
void add_positions(const at::Tensor& rows, const at::Tensor& table, const TokenPlaces& places);

// fp32 (sequence, hidden): for each position the sum of the rows of `gradient` (tokens, hidden)
// that stand there.
at::Tensor sum_by_position(const at::Tensor& gradient, const TokenPlaces& places);

}  // namespace sluice::model
