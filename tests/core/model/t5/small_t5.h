#pragma once
// A small T5 of either version.

#include "core/model/model_shape.h"

namespace sluice::model {

// Heads of their own width; more of the decoder's blocks than of the encoder's.
inline ModelShape small_t5(bool is_first_version, double dropout = 0) {
  ModelShape shape{"t5", 5, 48, 4, 24, 97, Family::t5};
  shape.ffn = 80;
  shape.head_dim = 10;
  shape.norm_eps = 1e-6;
  shape.tied_tables = is_first_version;
  shape.stacks = {.encoder_layers = 2, .buckets = 8, .bucket_distance = 12};
  shape.stacks.gated_mlp = !is_first_version;
  shape.dropout = {dropout, dropout, dropout, dropout};
  return shape;
}

}  // namespace sluice::model
