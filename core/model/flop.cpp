#include "core/model/flop.h"

#include "core/model/block_tensors.h"
#include "core/model/family_layouts.h"

namespace sluice::model {
namespace {

enum class Part : std::uint8_t { embedding, block, head };

Part part_of(const ModelShape& shape, LayerId layer) {
  if (index_of(layer) == 0) return Part::embedding;
  return index_of(layer) == shape.layers + 1 ? Part::head : Part::block;
}

// The factors of the formulas in flop.h, as doubles: their products leave 64 bits.
struct Factors {
  Factors(const ModelShape& shape, std::int64_t batch_, std::int64_t sequence_)
      : batch(static_cast<double>(batch_)),
        sequence(static_cast<double>(sequence_)),
        tokens(static_cast<double>(batch_ * sequence_)),
        hidden(static_cast<double>(shape.hidden)),
        heads(static_cast<double>(shape.heads)),
        attention_width(static_cast<double>(shape.attention_width())),
        kv_width(static_cast<double>(shape.kv_width())),
        ffn(static_cast<double>(shape.ffn)),
        vocabulary(static_cast<double>(shape.vocabulary)),
        patch_values(static_cast<double>(shape.channels * shape.patch * shape.patch)),
        classes(static_cast<double>(shape.classes)) {}

  double batch, sequence, tokens, hidden, heads, attention_width, kv_width, ffn, vocabulary,
      patch_values, classes;
};

// The elements of a block's matrices.
double block_weights(const ModelShape& shape, const Factors& f) {
  if (shape.family != Family::llama) return 12 * f.hidden * f.hidden;
  return f.hidden * (2 * f.attention_width + 2 * f.kv_width + 3 * f.ffn);
}

double block_flop(const ModelShape& shape, const Factors& f) {
  const double products = 2 * f.tokens * block_weights(shape, f);
  const double attention = 2 * f.tokens * f.sequence * f.attention_width;
  return products + (shape.is_causal() ? 1 : 2) * attention;
}

double head_flop(const ModelShape& shape, const Factors& f) {
  if (shape.family == Family::vit) return 2 * f.batch * f.hidden * f.classes;
  const double logits = 2 * f.tokens * f.hidden * f.vocabulary;
  if (shape.family != Family::bert) return logits;
  const double pooled = f.hidden * (f.hidden + double{kBertNextSentenceClasses});
  return logits + 2 * f.tokens * f.hidden * f.hidden + 2 * f.batch * pooled;
}

bool has_embedding_norm(const ModelShape& shape) {
  return shape.family == Family::bert || shape.family == Family::bloom;
}

double embedding_elements(const ModelShape& shape, const Factors& f) {
  return f.tokens * static_cast<double>(made_widths(embedding_tensors(shape)));
}

// The widths that a block makes, and the scores.
double block_elements(const ModelShape& shape, const Factors& f) {
  const double scores = f.heads * f.sequence / (shape.is_causal() ? 2 : 1);
  return f.tokens * (static_cast<double>(made_widths(block_tensors(shape))) + scores);
}

// The widths that the head makes, its logits, and bert's pooler.
double head_elements(const ModelShape& shape, const Factors& f) {
  const auto widths = static_cast<double>(made_widths(head_tensors(shape)));
  const double all = f.tokens * (f.vocabulary + widths) + f.batch * f.classes;
  if (shape.family != Family::bert) return all;
  return all + f.batch * (2 * f.hidden + double{kBertNextSentenceClasses});
}

// The depth does not matter to the embedding.
double embedding_parameters(ModelShape shape) {
  shape.layers = 1;
  return static_cast<double>(shape.flat_layout().layers.front().count);
}

}  // namespace

double forward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                    std::int64_t sequence) {
  const Factors f(shape, batch, sequence);
  switch (part_of(shape, layer)) {
    case Part::embedding:  // only vit has values a patch
      return 2 * (f.tokens - f.batch) * f.patch_values * f.hidden;
    case Part::block:
      return block_flop(shape, f);
    case Part::head:
      break;
  }
  return head_flop(shape, f);
}

double backward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                     std::int64_t sequence, Activations activations) {
  const double forward = forward_flop(shape, layer, batch, sequence);
  const Part part = part_of(shape, layer);
  if (part == Part::embedding) return forward;
  return (part == Part::block && is_recomputed(activations) ? 3 : 2) * forward;
}

double forward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                        std::int64_t sequence) {
  const Factors f(shape, batch, sequence);
  switch (part_of(shape, layer)) {
    case Part::embedding:
      return embedding_elements(shape, f);
    case Part::block:
      return block_elements(shape, f);
    case Part::head:
      break;
  }
  return head_elements(shape, f);
}

double backward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence, Activations activations) {
  const double forward = forward_elements(shape, layer, batch, sequence);
  const Part part = part_of(shape, layer);
  // The logits' gradient takes five sweeps over them where the loss takes three, and its product
  // with what the head got is the slowest there is: counted twice as well, gpt2-124m's head comes
  // out 2 to 7 % too slow forward, counted once 6 to 11 %.
  if (part == Part::head) return 2 * forward;
  // What a layer leaves are gradients of its parameters, copied; a copied value takes about a
  // quarter of one that is computed (gpt2-124m's tables: 39 million in 7 ms).
  const double passes = is_recomputed(activations) ? 3 : 2;
  if (part == Part::embedding) {
    return embedding_parameters(shape) / 4 + (has_embedding_norm(shape) ? passes * forward : 0);
  }
  return passes * forward + block_weights(shape, Factors(shape, batch, sequence)) / 4;
}

}  // namespace sluice::model
