// What blocks keep, against numbers worked out by hand from each family's architecture.

#include "core/model/made_tensors.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "core/model/architecture.h"
#include "core/model/flop.h"
#include "core/model/kept_bytes.h"
#include "tests/core/model/small_shapes.h"

namespace sluice::model {
namespace {

// LLaMA 13B: as many heads of keys and values as of queries.
ModelShape llama_13b() {
  ModelShape shape{"llama-13b", 40, 5120, 40, 4096, 32000, Family::llama};
  shape.kv_heads = 40;
  shape.ffn = 13824;
  return shape;
}

std::vector<MadeTensor> embedding_made(const ModelShape& shape) {
  return architecture_of(shape).embedding.made(shape);
}
std::vector<MadeTensor> block_made(const ModelShape& shape) {
  return architecture_of(shape).block.made(shape);
}
std::vector<MadeTensor> head_made(const ModelShape& shape) {
  return architecture_of(shape).head.made(shape);
}

std::int64_t kept_bytes(const ModelShape& shape, std::int32_t layer, std::int64_t tokens,
                        Activations choice = Activations::offload) {
  const auto blocks =
      kept_block_bytes(shape, LayerId{layer}, 1, tokens, choice, ParameterKind::bf16);
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

TEST_CASE("a block of GPT-2 keeps 18 widths, 4 numbers a row, and a sum a row and head") {
  const ModelShape shape{"gpt2", 2, 768, 12, 1024, 50257};
  CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) == 18 * 768 * 2 + 4 * 2 + 12 * 4);
  CHECK(needed_bytes(head_made(shape), ParameterKind::bf16) == 3 * 768 * 2 + 2 * 2);
  CHECK(needed_bytes(embedding_made(shape), ParameterKind::bf16) == 0);
  CHECK(made_widths(block_made(shape)) == 18 * 768);
  CHECK(memory_bytes(block_made(shape), ParameterKind::bf16) == 18 * 768 * 2 + 4 * 4 + 12 * 4);
  CHECK(kept_bytes(shape, 1, 64) == 64 * needed_bytes(block_made(shape), ParameterKind::bf16));
}

TEST_CASE("in fp32 a block keeps four bytes a value, and the sums of attention as they were") {
  const ModelShape shape{"gpt2", 2, 768, 12, 1024, 50257};
  CHECK(needed_bytes(block_made(shape), ParameterKind::fp32) == 18 * 768 * 4 + 4 * 4 + 12 * 4);
  CHECK(needed_bytes(head_made(shape), ParameterKind::fp32) == 3 * 768 * 4 + 2 * 4);
  CHECK(memory_bytes(block_made(shape), ParameterKind::fp32) == 18 * 768 * 4 + 4 * 4 + 12 * 4);
}

TEST_CASE("a block of LLaMA 13B keeps 10 widths of the model and 4 of its MLP") {
  // The model's width have the input; the first norm's normalised row, and that with its weight;
  // query and key as they are turned, and value; attention's result; the residual stream in the
  // middle; the second norm's two. The MLP's have gate, its silu, up, and their product.
  const ModelShape shape = llama_13b();
  const std::int64_t token_bytes = (10 * 5120 + 4 * 13824) * 2 + 2 * 4 + 40 * 4;
  CHECK(token_bytes == 213'160);
  CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) == token_bytes);
  CHECK(kept_bytes(shape, 1, 4096) == 4096 * token_bytes);
  CHECK(kept_bytes(shape, 40, 4096) == 4096 * token_bytes);
  CHECK(kept_bytes(shape, 1, 4096, Activations::offload_inputs) == 4096 * 5120 * 2);
  // The last norm: its input, the normalised row, and that with the weight.
  CHECK(kept_bytes(shape, 41, 4096) == 4096 * (3 * 5120 * 2 + 4));
  CHECK(kept_bytes(shape, 0, 4096) == 0);
  // In memory the output stands for the input.
  CHECK(memory_bytes(block_made(shape), ParameterKind::bf16) ==
        (10 * 5120 + 4 * 13824) * 2 + 2 * 4 + 40 * 4);
}

TEST_CASE("fewer heads of keys and values keep less, wide heads and their norms more") {
  ModelShape shape = llama_13b();
  shape.kv_heads = 8;
  CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) ==
        (8 * 5120 + 2 * 1024 + 4 * 13824) * 2 + 2 * 4 + 40 * 4);
  shape.head_dim = 256;  // queries and attention's result are 10240 wide, keys and values 2048
  CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) ==
        (6 * 5120 + 2 * 10240 + 2 * 2048 + 4 * 13824) * 2 + 2 * 4 + 40 * 4);
  shape.qk_norm = true;  // what goes into the norms of heads, and what is normalised
  CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) ==
        (6 * 5120 + 4 * 10240 + 4 * 2048 + 4 * 13824) * 2 + (2 + 40 + 8) * 4 + 40 * 4);
}

TEST_CASE("bert, bloom and vit keep GPT-2's widths; bert's head and the embeddings' norms more") {
  for (const ModelShape& shape : small_shapes()) {
    if (shape.family == Family::llama || shape.family == Family::t5) continue;
    INFO(family_name(shape.family));
    CHECK(needed_bytes(block_made(shape), ParameterKind::bf16) == 18 * 8 * 2 + 4 * 2 + 2 * 4);
    const bool is_bert = shape.family == Family::bert;
    CHECK(needed_bytes(head_made(shape), ParameterKind::bf16) == (is_bert ? 5 : 3) * 8 * 2 + 2 * 2);
    const bool has_norm = is_bert || shape.family == Family::bloom;
    CHECK(needed_bytes(embedding_made(shape), ParameterKind::bf16) ==
          (has_norm ? 2 * 8 * 2 + 2 * 2 : 0));
  }
}

TEST_CASE("a block of T5 keeps as many queries as it has rows, and keys of the source besides") {
  ModelShape shape = small_shapes()[static_cast<std::size_t>(Family::t5)];  // 8, heads 2 x 5
  const Architecture& rows = architecture_of(shape);
  const auto bytes_of = [&shape](const LayerKind& kind, LayerTokens tokens) {
    return needed_bytes(kind.made(shape), ParameterKind::bf16, tokens);
  };
  // Input, two of a norm, the stream in the middle, and two of the second norm; query, key, value
  // and the result; relu's.
  const std::int64_t encoder = (6 * 8 + 4 * 10 + 20) * 2 + 2 * 4 + 2 * 4;
  CHECK(bytes_of(rows.block, {7, 7}) == 7 * encoder);
  // Stream, norm, query and result once more, and a sum; keys and values of the source.
  const std::int64_t decoder = encoder + (3 * 8 + 2 * 10) * 2 + 4 + 2 * 4;
  CHECK(bytes_of(rows.decoder_block, {3, 7}) == 3 * decoder + 7 * 2 * 10 * 2);
  CHECK(bytes_of(rows.head, {3, 7}) == 3 * (3 * 8 * 2 + 4));
  shape.stacks.gated_mlp = true;
  CHECK(bytes_of(rows.block, {7, 7}) == 7 * (encoder + 3 * 20 * 2));
}

TEST_CASE("values that are handled are those that are made, kept or not") {
  for (const ModelShape& shape : small_shapes()) {
    INFO(family_name(shape.family));
    const std::int64_t tokens = 3 * shape.sequence;
    const double scores =
        static_cast<double>(tokens * shape.heads * shape.sequence) / (shape.is_causal() ? 2 : 1);
    const double made = static_cast<double>(tokens * made_widths(block_made(shape)));
    CHECK(forward_elements(shape, LayerId{1}, 3, shape.sequence) == Approx(made + scores));
  }
  // A llama's queries and keys once more, as they are before they are turned.
  CHECK(made_widths(block_made(llama_13b())) == 12 * 5120 + 4 * 13824);
}

}  // namespace
}  // namespace sluice::model
