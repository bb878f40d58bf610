#pragma once
// The tensors of each family in flat order: Hugging Face's names and shapes, in the order in which
// its modules hold them. What a model shares (the output table of gpt2, bert and bloom is the token
// table; llama has one of its own) is there once. Embedding, blocks and head are layers of
// FlatLayout.
//
// Thread contract: free functions.

#include "core/model/model_shape.h"

namespace sluice::model {

FlatLayout gpt2_layout(const ModelShape& shape);   // GPT2LMHeadModel, without "transformer."
FlatLayout bert_layout(const ModelShape& shape);   // BertForPreTraining, without "bert."
FlatLayout bloom_layout(const ModelShape& shape);  // BloomForCausalLM, without "transformer."
FlatLayout vit_layout(const ModelShape& shape);    // ViTForImageClassification, without "vit."
FlatLayout llama_layout(const ModelShape& shape);  // LlamaForCausalLM, without "model."

// What BERT calls segments A and B, and the two answers to "does B follow A?".
inline constexpr std::int64_t kBertSegments = 2;
inline constexpr std::int64_t kBertNextSentenceClasses = 2;

}  // namespace sluice::model
