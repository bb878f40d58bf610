// The counts of core/model/flop.h against a sum over the matrix products of each family, written
// down one by one.

#include "core/model/flop.h"

#include <catch2/catch.hpp>

#include "tests/core/model/small_shapes.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kBatch = 5;

// Multiply-adds of (rows x inner) times (inner x columns).
constexpr std::int64_t product(std::int64_t rows, std::int64_t inner, std::int64_t columns) {
  return rows * inner * columns;
}

// Multiply-adds for all pairs of tokens; tokens that look back only need half of the pairs.
std::int64_t full_attention(const ModelShape& m, std::int64_t sequence) {
  const std::int64_t head_width = m.head_width();
  const std::int64_t scores = product(sequence, head_width, sequence);
  const std::int64_t values = product(sequence, sequence, head_width);
  return kBatch * m.heads * (scores + values);
}

std::int64_t mlp(const ModelShape& m, std::int64_t tokens) {
  const std::int64_t wide = m.ffn > 0 ? m.ffn : 4 * m.hidden;
  return product(tokens, m.hidden, wide) + product(tokens, wide, m.hidden);
}

// query, key, value, and what joins the heads.
std::int64_t four_projections(const ModelShape& m, std::int64_t tokens) {
  return 4 * product(tokens, m.hidden, m.hidden);
}

struct Count {
  std::int64_t embedding;
  std::int64_t block;
  std::int64_t head;
};

Count gpt2_or_bloom(const ModelShape& m, std::int64_t sequence) {
  const std::int64_t tokens = kBatch * sequence;
  const std::int64_t fused = product(tokens, m.hidden, 3 * m.hidden);
  const std::int64_t joined = product(tokens, m.hidden, m.hidden);
  return {0, fused + joined + mlp(m, tokens) + full_attention(m, sequence) / 2,
          product(tokens, m.hidden, m.vocabulary)};
}

Count bert(const ModelShape& m, std::int64_t sequence) {
  const std::int64_t tokens = kBatch * sequence;
  const std::int64_t pooler = product(kBatch, m.hidden, m.hidden);
  const std::int64_t block =
      four_projections(m, tokens) + mlp(m, tokens) + full_attention(m, sequence);
  if (m.classes > 0) return {0, block, pooler + product(kBatch, m.hidden, m.classes)};
  const std::int64_t follows = product(kBatch, m.hidden, 2);
  const std::int64_t transform = product(tokens, m.hidden, m.hidden);
  const std::int64_t logits = product(tokens, m.hidden, m.vocabulary);
  return {0, block, (m.masked_head ? 0 : pooler + follows) + transform + logits};
}

Count vit(const ModelShape& m) {
  const std::int64_t patches = (m.image / m.patch) * (m.image / m.patch);
  const std::int64_t tokens = kBatch * (patches + 1);
  return {product(kBatch * patches, m.channels * m.patch * m.patch, m.hidden),
          four_projections(m, tokens) + mlp(m, tokens) + full_attention(m, patches + 1),
          product(kBatch, m.hidden, m.classes)};
}

Count llama(const ModelShape& m, std::int64_t sequence) {
  const std::int64_t tokens = kBatch * sequence;
  const std::int64_t head_width = m.head_dim > 0 ? m.head_dim : m.hidden / m.heads;
  const std::int64_t query = product(tokens, m.hidden, m.heads * head_width);
  const std::int64_t key_and_value = 2 * product(tokens, m.hidden, m.kv_heads * head_width);
  const std::int64_t joined = product(tokens, m.heads * head_width, m.hidden);
  const std::int64_t gate_and_up = 2 * product(tokens, m.hidden, m.ffn);
  const std::int64_t down = product(tokens, m.ffn, m.hidden);
  return {0, query + key_and_value + joined + gate_and_up + down + full_attention(m, sequence) / 2,
          product(tokens, m.hidden, m.vocabulary)};
}

struct T5Count {
  std::int64_t encoder_block;
  std::int64_t decoder_block;
  std::int64_t head;
};

// Scores of all pairs of a query and a key, and the values that they weigh.
std::int64_t pairs(const ModelShape& m, std::int64_t queries, std::int64_t keys) {
  return kBatch * m.heads * 2 * product(queries, m.head_dim, keys);
}

T5Count t5(const ModelShape& m, std::int64_t sequence) {
  const std::int64_t targets = m.target_sequence(sequence);
  const std::int64_t width = m.heads * m.head_dim;
  const std::int64_t of_source = product(kBatch * sequence, m.hidden, width);
  const std::int64_t of_targets = product(kBatch * targets, m.hidden, width);
  const std::int64_t wide = (m.stacks.gated_mlp ? 3 : 2) * product(kBatch, m.hidden, m.ffn);
  return {4 * of_source + pairs(m, sequence, sequence) + sequence * wide,
          6 * of_targets + 2 * of_source + pairs(m, targets, targets) +
              pairs(m, targets, sequence) + targets * wide,
          product(kBatch * targets, m.hidden, m.vocabulary)};
}

Count count(const ModelShape& m, std::int64_t sequence) {
  if (m.family == Family::vit) return vit(m);
  if (m.family == Family::llama) return llama(m, sequence);
  return m.family == Family::bert ? bert(m, sequence) : gpt2_or_bloom(m, sequence);
}

double total_flop(const ModelShape& shape) {
  double sum = 0;
  for (std::int32_t l = 0; l < shape.layers + 2; ++l) {
    sum += forward_flop(shape, LayerId{l}, 1, shape.sequence);
  }
  return sum;
}

}  // namespace

TEST_CASE("forward is the sum of the matrix products, two operations a multiply-add") {
  for (const ModelShape& shape : small_shapes()) {
    if (shape.has_decoder()) continue;
    const std::int64_t sequence = shape.family == Family::vit ? shape.sequence : 14;
    const auto flop = [&](std::int32_t layer) {
      return forward_flop(shape, LayerId{layer}, kBatch, sequence);
    };
    const Count expected = count(shape, sequence);
    INFO(family_name(shape.family));
    CHECK(flop(0) == static_cast<double>(2 * expected.embedding));
    for (std::int32_t block = 1; block <= shape.layers; ++block) {
      CHECK(flop(block) == static_cast<double>(2 * expected.block));
    }
    CHECK(flop(4) == static_cast<double>(2 * expected.head));
  }
}

TEST_CASE("an encoder's forward is of its source, a decoder's of its targets and their source") {
  for (const ModelShape& shape : small_shapes()) {
    if (!shape.has_decoder()) continue;
    const auto flop = [&](std::int32_t layer) {
      return forward_flop(shape, LayerId{layer}, kBatch, 29);
    };
    const T5Count expected = t5(shape, 29);
    CHECK(flop(0) == 0);
    CHECK(flop(1) == static_cast<double>(2 * expected.encoder_block));
    CHECK(flop(2) == static_cast<double>(2 * expected.decoder_block));
    CHECK(flop(3) == flop(2));
    CHECK(flop(4) == static_cast<double>(2 * expected.head));
  }
}

TEST_CASE("an image costs what torchvision counts for ViT-L/16 and ViT-H/14") {
  // Its billions of multiply-adds, _ops of the weights' metadata.
  const ModelShape large{"l", 24, 1024, 16, 197, 0, Family::vit, 224, 16, 3, 1000};
  const ModelShape huge{"h", 32, 1280, 16, 257, 0, Family::vit, 224, 14, 3, 1000};
  CHECK(total_flop(large) / 2e9 == Approx(61.555).margin(0.001));
  CHECK(total_flop(huge) / 2e9 == Approx(167.295).margin(0.001));
}

TEST_CASE("backward is two products for each, of patches one, and blocks may be recomputed") {
  for (const ModelShape& shape : small_shapes()) {
    INFO(family_name(shape.family));
    for (std::int32_t l = 0; l < shape.layers + 2; ++l) {
      const LayerId layer{l};
      const double forward = forward_flop(shape, layer, kBatch, shape.sequence);
      const auto backward = [&](Activations activations) {
        return backward_flop(shape, layer, kBatch, shape.sequence, activations);
      };
      const bool is_block = l > 0 && l <= shape.layers;
      CHECK(backward(Activations::keep) == (l == 0 ? 1 : 2) * forward);
      CHECK(backward(Activations::recompute) ==
            backward(Activations::keep) + (is_block ? forward : 0));
    }
  }
}

TEST_CASE("single values grow with the batch; backward copies the gradients of the tables") {
  for (const ModelShape& shape : small_shapes()) {
    const FlatLayout layout = shape.flat_layout();
    INFO(family_name(shape.family));
    for (std::int32_t l = 0; l < layout.layer_count(); ++l) {
      const LayerId layer{l};
      const double one = forward_elements(shape, layer, 1, shape.sequence);
      CHECK(one > 0);
      CHECK(forward_elements(shape, layer, kBatch, shape.sequence) == Approx(kBatch * one));
    }
    // A copied gradient counts a quarter; nothing else is left to do for tables.
    const double embedding =
        backward_elements(shape, LayerId{0}, kBatch, shape.sequence, Activations::keep);
    const double copied = static_cast<double>(layout.layers[0].count) / 4;
    const bool has_norm = shape.family == Family::bert || shape.family == Family::bloom;
    if (has_norm) {
      CHECK(embedding > copied);
    } else {
      CHECK(embedding == copied);
    }
  }
}

}  // namespace sluice::model
