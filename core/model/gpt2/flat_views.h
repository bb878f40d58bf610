#pragma once
// The flat 16-bit array seen as tensors, layer by layer. They are views: what is written into the
// array is what the next forward reads.
//
// Thread contract: plain data.

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/model/flat_layout.h"

namespace sluice::model {

// A block's tensors in the order in which they lie in the flat array.
enum BlockTensor : std::uint8_t {
  kLn1Weight,
  kLn1Bias,
  kAttentionWeight,  // [hidden, 3 * hidden]: query, key, value
  kAttentionBias,
  kAttentionOutWeight,  // [hidden, hidden]
  kAttentionOutBias,
  kLn2Weight,
  kLn2Bias,
  kMlpWeight,  // [hidden, 4 * hidden]
  kMlpBias,
  kMlpOutWeight,  // [4 * hidden, hidden]
  kMlpOutBias,
  kBlockTensorCount
};

using BlockTensors = std::array<at::Tensor, kBlockTensorCount>;

struct FlatViews {
  at::Tensor token_table;     // [vocabulary, hidden]; the head's output table as well
  at::Tensor position_table;  // [sequence, hidden]
  std::vector<BlockTensors> blocks;
  std::array<at::Tensor, 2> final_norm;  // weight, bias
};

// The layer's tensors in `views` from now on are those of its `flat` parameters. The blocks' and
// the head's own tensors ask autograd for gradients; the two tables do not, since their gradients
// are made by hand (tied_gradient.h).
void view_layer(const FlatLayout& layout, LayerId layer, const at::Tensor& flat, FlatViews& views);

// All layers', of an array in host memory.
FlatViews view_flat(const FlatLayout& layout, at::ScalarType dtype,
                    std::span<std::uint16_t> parameters);

}  // namespace sluice::model
