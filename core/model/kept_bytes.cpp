// The counts are those of core/model/gpt2/block.cpp's graph, one line each; other families differ
// in where their LayerNorms stand, which changes no count.

#include "core/model/kept_bytes.h"

namespace sluice::model {
namespace {

constexpr std::int64_t k16BitBytes = 2;
constexpr std::int64_t kFp32Bytes = 4;

// Storages as blocks: the small ones together.
class Blocks {
 public:
  void add(std::int64_t storage_bytes) {
    if (storage_bytes >= kOwnBlockBytes) {
      bytes_.push_back(storage_bytes);
    } else {
      small_bytes_ += storage_bytes;
    }
  }
  std::vector<std::int64_t> all() {
    if (small_bytes_ > 0) bytes_.push_back(small_bytes_);
    return std::move(bytes_);
  }

 private:
  std::vector<std::int64_t> bytes_;
  std::int64_t small_bytes_ = 0;
};

// A row's mean, the reciprocal of its deviation, and the normalised row.
void add_norm(Blocks& blocks, std::int64_t tokens, std::int64_t row) {
  blocks.add(tokens * k16BitBytes);
  blocks.add(tokens * k16BitBytes);
  blocks.add(row);
}

void add_block(Blocks& blocks, const ModelShape& shape, std::int64_t tokens, std::int64_t row) {
  add_norm(blocks, tokens, row);
  blocks.add(row);                                // with weight and bias
  blocks.add(3 * row);                            // query, key, value
  blocks.add(row);                                // attention's result
  blocks.add(tokens * shape.heads * kFp32Bytes);  // and the sums of its rows
  blocks.add(row);                                // residual stream in the middle
  add_norm(blocks, tokens, row);
  blocks.add(row);      // with weight and bias
  blocks.add(4 * row);  // before gelu
  blocks.add(4 * row);  // and after it
}

}  // namespace

std::vector<std::int64_t> kept_block_bytes(const ModelShape& shape, LayerId layer,
                                           std::int64_t batch, std::int64_t sequence,
                                           Activations choice) {
  if (!is_offloaded(choice) || index_of(layer) == 0) return {};
  const std::int64_t tokens = batch * sequence;
  const std::int64_t row = tokens * shape.hidden * k16BitBytes;
  Blocks blocks;
  blocks.add(row);  // the layer's input
  if (is_recomputed(choice)) return blocks.all();
  if (index_of(layer) <= shape.layers) {
    add_block(blocks, shape, tokens, row);
  } else {
    add_norm(blocks, tokens, row);
    blocks.add(row);  // with weight and bias: what the logits are made of
  }
  return blocks.all();
}

}  // namespace sluice::model
