#pragma once
// T5 written down plainly, in fp32, differentiated as one graph: core/model/t5 is compared with it,
// and it with transformers. It shares nothing with it but the layout's names.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"

namespace sluice::model {

struct PlainT5 {
  double loss = 0;              // the mean over targets that are not below zero
  std::vector<float> logits;    // row-major (batch, target_sequence, vocabulary)
  std::vector<float> gradient;  // flat order
};

// `seen`: tokens of each source that are seen, the first ones; empty: all.
PlainT5 plain_t5(const ModelShape& shape, std::span<const float> parameters,
                 const TokenBatch& batch, const std::vector<std::int64_t>& seen = {});

}  // namespace sluice::model
