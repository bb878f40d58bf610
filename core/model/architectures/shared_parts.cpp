#include "core/model/architectures/shared_parts.h"

namespace sluice::model {

std::vector<MadeTensor> plain_block_made(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  MadeTensors made(hidden);
  made.layer_norm(hidden);
  made.kept("query, key and value", 3 * hidden);
  made.fused_attention(shape.heads, hidden);
  made.kept("residual stream in the middle", hidden);
  made.layer_norm(hidden);
  made.kept("before gelu", shape.mlp_width());
  made.kept("after gelu", shape.mlp_width());
  made.in_memory("output", hidden);
  return made.take();
}

void record_plain_block(LayerTape& tape, const ModelShape& shape) {
  const auto x = tape.input(shape.hidden);
  const auto mixed = tape.attention(tape.product_plus_bias(tape.layer_norm(x), 3 * shape.hidden));
  const auto narrowed = tape.product_plus_bias(mixed, shape.hidden);
  const auto middle = tape.sum(x, tape.dropped(narrowed, shape.dropout.rows));
  const auto widened =
      tape.activated(tape.product_plus_bias(tape.layer_norm(middle), shape.mlp_width()));
  const auto last = tape.product_plus_bias(widened, shape.hidden);
  tape.output(tape.sum(middle, tape.dropped(last, shape.dropout.rows)));
}

std::vector<Product> plain_block_products(const ModelShape& shape) {
  const std::int64_t hidden = shape.hidden;
  const std::int64_t wide = shape.mlp_width();
  return {{hidden, 3 * hidden}, {hidden, hidden}, {hidden, wide}, {wide, hidden}};
}

std::vector<Attention> plain_block_attentions(const ModelShape& shape) {
  return {{shape.hidden, shape.heads, shape.is_causal()}};
}

std::vector<MadeTensor> looked_up_made(const ModelShape& shape) {
  return {{"sum of what was looked up", shape.hidden, MadeUse::in_memory}};
}

std::vector<MadeTensor> looked_up_and_normed_made(const ModelShape& shape) {
  MadeTensors made;
  made.kept("sum of what was looked up", shape.hidden);
  made.layer_norm(shape.hidden);
  std::vector<MadeTensor> tensors = made.take();
  tensors.back().use = MadeUse::in_memory;  // the first block's input
  return tensors;
}

std::vector<MadeTensor> normed_head_made(const ModelShape& shape) {
  MadeTensors made(shape.hidden);
  made.layer_norm(shape.hidden);
  return made.take();
}

void record_normed_head(LayerTape& tape, const ModelShape& shape) {
  tape.output(tape.layer_norm(tape.input(shape.hidden)));
}

std::vector<Product> token_logits(const ModelShape& shape) {
  return {{shape.hidden, shape.vocabulary}};
}

}  // namespace sluice::model
