#pragma once
// Llama written down plainly, in fp32, differentiated as one graph: core/model/llama is compared
// with it, and it with transformers. It shares nothing with it but the layout's names.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"

namespace sluice::model {

struct PlainLlama {
  double loss = 0;              // the mean over targets that are not below zero
  std::vector<float> gradient;  // flat order
};

PlainLlama plain_llama(const ModelShape& shape, std::span<const float> parameters,
                       const TokenBatch& batch);

}  // namespace sluice::model
