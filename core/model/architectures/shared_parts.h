#pragma once
// Parts of rows that several families have.
//
// Thread contract: free functions.

#include "core/model/architecture.h"

namespace sluice::model {

// The block of gpt2, bert, bloom and vit: attention of as many heads of keys and values as of
// queries, and an MLP, each beside a LayerNorm. The LayerNorms of
// bert stand behind its sublayers: it has the sums of the residual stream in their place, and the
// same widths.
std::vector<MadeTensor> plain_block_made(const ModelShape& shape);
void record_plain_block(LayerTape& tape, const ModelShape& shape);
std::vector<Product> plain_block_products(const ModelShape& shape);
std::vector<Attention> plain_block_attentions(const ModelShape& shape);

// Rows that were looked up and added, without a LayerNorm and with one.
std::vector<MadeTensor> looked_up_made(const ModelShape& shape);
std::vector<MadeTensor> looked_up_and_normed_made(const ModelShape& shape);

// A LayerNorm; and logits of every token.
std::vector<MadeTensor> normed_head_made(const ModelShape& shape);
void record_normed_head(LayerTape& tape, const ModelShape& shape);
std::vector<Product> token_logits(const ModelShape& shape);

}  // namespace sluice::model
