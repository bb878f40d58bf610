#pragma once
// GPT-2 written down plainly, in fp32, differentiated as one graph: what core/model/gpt2 is
// compared with. It shares nothing with it but the layout's names.

#include <cstdint>
#include <span>
#include <vector>

#include "base/float16.h"
#include "core/model/model_shape.h"
#include "core/model/trainable_model.h"

namespace sluice::model {

struct PlainResult {
  double loss = 0;
  std::vector<float> gradient;  // flat order
};

// Which uses of the token table its gradient counts.
enum class TableUse : std::uint8_t { both, head_only };

PlainResult plain_gpt2(const ModelShape& shape, Float16Kind kind,
                       std::span<const std::uint16_t> parameters, const TokenBatch& batch,
                       TableUse use = TableUse::both);

PlainResult plain_gpt2(const ModelShape& shape, std::vector<float> parameters,
                       const TokenBatch& batch, TableUse use = TableUse::both);

}  // namespace sluice::model
