#pragma once
// A small model of each family, of numbers that are all different, so that none stands for another;
// at the end a llama with heads of their own width, a bert with its head for masked tokens alone,
// a t5 of version 1.1, and a bert that classifies.

#include <vector>

#include "core/model/model_shape.h"

namespace sluice::model {

inline std::vector<ModelShape> small_shapes() {
  std::vector<ModelShape> shapes = {{"small", 3, 8, 2, 16, 11}};
  shapes.push_back({"small", 3, 8, 2, 16, 11, Family::bert});
  shapes.push_back({"small", 3, 8, 2, 16, 11, Family::bloom});
  shapes.push_back({"small", 3, 8, 2, 26, 0, Family::vit, 35, 7, 3, 13});
  shapes.push_back({"small", 3, 12, 4, 16, 11, Family::llama, 0, 0, 0, 0, 2, 20});
  shapes.push_back({"small", 3, 8, 2, 16, 11, Family::t5, 0, 0, 0, 0, 0, 20, 5, true});
  shapes.back().stacks = {.encoder_layers = 1, .buckets = 12, .bucket_distance = 14};
  shapes.push_back({"small", 3, 12, 4, 16, 11, Family::llama, 0, 0, 0, 0, 2, 20, 5, true});
  shapes.push_back({"small", 3, 8, 2, 16, 11, Family::bert});
  shapes.back().masked_head = true;
  shapes.push_back(shapes[5]);
  shapes.back().tied_tables = false;
  shapes.back().stacks.gated_mlp = true;
  shapes.push_back({"small", 3, 8, 2, 16, 11, Family::bert});
  shapes.back().classes = 5;
  return shapes;
}

}  // namespace sluice::model
