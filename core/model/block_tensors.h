#pragma once
// The tensors that one block of each family makes in its forward, and which of them its backward
// needs: declared here once. What leaves (kept_bytes.h), what is in memory (core/model/gpt2,
// core/shard) and the values that are handled one by one (flop.h) are sums over this list.
//
// All families are counted on one basis, that of core/model/gpt2/block.cpp, whose list
// tests/core/model/gpt2/saved_blocks_test.cpp holds to libtorch to the byte:
//
// - 16 bits a value; a tensor that several operations need is there once; parameters are not there;
// - a norm keeps the normalised row, which its weight's gradient needs, and a number or two a row;
//   its product with the weight is the input of the matrices behind it;
// - attention is fused: it keeps its inputs, its result and one fp32 sum a row and head, no scores,
//   and takes fewer heads of keys and values than of queries as they are;
// - a product keeps its input, a sum of two nothing.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

#include "core/model/model_shape.h"

namespace sluice::model {

enum class BlockUse : std::uint8_t {
  input,      // the layer before made it; backward needs it
  kept,       // backward needs it
  statistic,  // backward needs it: numbers a row, no width of the model
  in_memory,  // there as long, but not of what leaves: a copy, and the next layer's input
  passing,    // backward does not need it
};

struct MadeTensor {
  const char* what = "";
  std::int64_t width = 0;  // values a token
  BlockUse use = BlockUse::kept;
  std::int64_t value_bytes = 2;
};

// In the order in which forward saves them.
std::vector<MadeTensor> block_tensors(const ModelShape& shape);
// The same of the embedding, whose output is the first block's input, and of the head, but for its
// logits.
std::vector<MadeTensor> embedding_tensors(const ModelShape& shape);
std::vector<MadeTensor> head_tensors(const ModelShape& shape);

// Whether it has to be there when backward begins.
bool is_needed(BlockUse use);
// Values a token that are of the model's widths: neither the input nor numbers a row.
std::int64_t made_widths(const std::vector<MadeTensor>& tensors);
// Bytes a token that backward needs: the input, what is kept, and numbers a row.
std::int64_t needed_bytes(const std::vector<MadeTensor>& tensors);
// Bytes a token in memory between forward and backward where nothing leaves, without the input,
// which is the output of the layer before. Numbers a row are counted in fp32, as some kernels
// keep them.
std::int64_t memory_bytes(const std::vector<MadeTensor>& tensors);

}  // namespace sluice::model
