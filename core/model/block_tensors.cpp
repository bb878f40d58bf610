#include "core/model/block_tensors.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kFp32Bytes = 4;

using Tensors = std::vector<MadeTensor>;

void add_layer_norm(Tensors& tensors, std::int64_t width) {
  tensors.push_back({"mean of a row", 1, BlockUse::statistic});
  tensors.push_back({"reciprocal deviation of a row", 1, BlockUse::statistic});
  tensors.push_back({"normalised", width});
  tensors.push_back({"with weight and bias", width});
}

void add_rms_norm(Tensors& tensors, std::int64_t width) {
  tensors.push_back({"reciprocal root mean square of a row", 1, BlockUse::statistic});
  tensors.push_back({"normalised", width});
  tensors.push_back({"with weight", width});
}

// `width` of queries.
void add_fused_attention(Tensors& tensors, const ModelShape& shape, std::int64_t width) {
  tensors.push_back({"attention's result", width});
  tensors.push_back({"its result as rows", width, BlockUse::in_memory});
  tensors.push_back({"sums of its rows", shape.heads, BlockUse::statistic, kFp32Bytes});
}

// A block whose LayerNorms stand behind its sublayers, bert's, has the sums of the residual stream
// in their place, and the same widths.
Tensors plain_block(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  Tensors tensors = {{"input", hidden, BlockUse::input}};
  add_layer_norm(tensors, hidden);
  tensors.push_back({"query, key and value", 3 * hidden});
  add_fused_attention(tensors, shape, hidden);
  tensors.push_back({"residual stream in the middle", hidden});
  add_layer_norm(tensors, hidden);
  tensors.push_back({"before gelu", 4 * hidden});
  tensors.push_back({"after gelu", 4 * hidden});
  tensors.push_back({"output", hidden, BlockUse::in_memory});
  return tensors;
}

// Queries or keys. Turning them needs angles alone in backward, so what was turned is not kept;
// only the norm of each head needs its input.
void add_turned(Tensors& tensors, const ModelShape& shape, std::int64_t width) {
  if (shape.qk_norm) {
    tensors.push_back({"before its norm", width});
    tensors.push_back(
        {"reciprocal root mean square of a head", width / shape.head_width(), BlockUse::statistic});
    tensors.push_back({"normalised", width});
    tensors.push_back({"with weight", width, BlockUse::passing});
  } else {
    tensors.push_back({"before it is turned", width, BlockUse::passing});
  }
  tensors.push_back({"turned", width});
}

Tensors llama_block(const ModelShape& shape) {
  Tensors tensors = {{"input", shape.hidden, BlockUse::input}};
  add_rms_norm(tensors, shape.hidden);
  add_turned(tensors, shape, shape.attention_width());
  add_turned(tensors, shape, shape.kv_width());
  tensors.push_back({"value", shape.kv_width()});
  add_fused_attention(tensors, shape, shape.attention_width());
  tensors.push_back({"residual stream in the middle", shape.hidden});
  add_rms_norm(tensors, shape.hidden);
  tensors.push_back({"gate", shape.ffn});
  tensors.push_back({"silu of the gate", shape.ffn});
  tensors.push_back({"up", shape.ffn});
  tensors.push_back({"product of the two", shape.ffn});
  tensors.push_back({"output", shape.hidden, BlockUse::in_memory});
  return tensors;
}

}  // namespace

std::vector<MadeTensor> block_tensors(const ModelShape& shape) {
  return shape.family == Family::llama ? llama_block(shape) : plain_block(shape);
}

std::vector<MadeTensor> embedding_tensors(const ModelShape& shape) {
  const bool has_norm = shape.family == Family::bert || shape.family == Family::bloom;
  if (!has_norm) return {{"sum of what was looked up", shape.hidden, BlockUse::in_memory}};
  Tensors tensors = {{"sum of what was looked up", shape.hidden}};
  add_layer_norm(tensors, shape.hidden);
  tensors.back().use = BlockUse::in_memory;
  return tensors;
}

std::vector<MadeTensor> head_tensors(const ModelShape& shape) {
  Tensors tensors = {{"input", shape.hidden, BlockUse::input}};
  if (shape.family == Family::llama) {
    add_rms_norm(tensors, shape.hidden);
    return tensors;
  }
  if (shape.family == Family::bert) {  // its transform
    tensors.push_back({"before gelu", shape.hidden});
    tensors.push_back({"after gelu", shape.hidden});
  }
  add_layer_norm(tensors, shape.hidden);
  return tensors;
}

std::int64_t made_widths(const std::vector<MadeTensor>& tensors) {
  std::int64_t widths = 0;
  for (const MadeTensor& tensor : tensors) {
    if (tensor.use != BlockUse::input && tensor.use != BlockUse::statistic) widths += tensor.width;
  }
  return widths;
}

bool is_needed(BlockUse use) {
  return use == BlockUse::input || use == BlockUse::kept || use == BlockUse::statistic;
}

std::int64_t needed_bytes(const std::vector<MadeTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const MadeTensor& tensor : tensors) {
    if (is_needed(tensor.use)) bytes += tensor.width * tensor.value_bytes;
  }
  return bytes;
}

std::int64_t memory_bytes(const std::vector<MadeTensor>& tensors) {
  std::int64_t bytes = 0;
  for (const MadeTensor& tensor : tensors) {
    if (tensor.use == BlockUse::statistic) bytes += tensor.width * kFp32Bytes;
    if (tensor.use == BlockUse::kept || tensor.use == BlockUse::in_memory)
      bytes += tensor.width * tensor.value_bytes;
  }
  return bytes;
}

}  // namespace sluice::model
