#pragma once
// BERT with its head for masked tokens, or with one that classifies, written down plainly, in fp32,
// differentiated as one graph:
// core/model/bert is compared with it, and it with transformers. It shares nothing with it but the
// layout's names.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"

namespace sluice::model {

struct PlainBert {
  double loss = 0;              // the mean over targets that are not below zero
  std::vector<float> logits;    // row-major (batch, sequence, vocabulary), or (batch, classes)
  std::vector<float> gradient;  // flat order
};

// What a batch of transformers' may say beside its tokens; empty: segment 0, and all are seen.
struct PlainSights {
  std::vector<std::int32_t> segments;  // of each token
  std::vector<std::int64_t> seen;      // tokens of each row that are seen, the first ones
};

PlainBert plain_bert(const ModelShape& shape, std::span<const float> parameters,
                     const TokenBatch& batch, const PlainSights& sights = {});

}  // namespace sluice::model
