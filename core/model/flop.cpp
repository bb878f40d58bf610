#include "core/model/flop.h"

#include "core/model/architecture.h"
#include "core/model/layer_places.h"
#include "core/model/lora.h"

namespace sluice::model {
namespace {

// Counts as doubles: their products leave 64 bits.
struct Extent {
  double batch = 0;
  double sequence = 0;  // of the layer's own tokens
  double source = 0;    // of the source's
  double tokens() const { return batch * sequence; }
};

double rows_of(Rows rows, const Extent& extent) {
  switch (rows) {
    case Rows::tokens:
      return extent.tokens();
    case Rows::patches:
      return extent.tokens() - extent.batch;
    case Rows::sources:
      return extent.batch * extent.source;
    case Rows::sequences:
      break;
  }
  return extent.batch;
}

// The pairs of a query with keys that it sees.
double keys_of(const Attention& attention, const Extent& extent) {
  if (attention.of_sources) return extent.source;
  return extent.sequence * (attention.looks_back_only ? 0.5 : 1);
}

std::vector<Attention> attentions_of(const ModelShape& shape, LayerId layer) {
  const LayerKind& kind = layer_kind(shape, layer);
  return kind.attentions != nullptr ? kind.attentions(shape) : std::vector<Attention>{};
}

double product_flop(const ModelShape& shape, LayerId layer, const Extent& extent) {
  double flop = 0;
  for (const Product& product : products_of(shape, layer)) {
    flop += 2 * rows_of(product.rows, extent) * static_cast<double>(product.in) *
            static_cast<double>(product.out);
  }
  return flop;
}

double flop_of(const ModelShape& shape, LayerId layer, const Extent& extent) {
  double flop = product_flop(shape, layer, extent);
  for (const Attention& attention : attentions_of(shape, layer)) {
    flop += 4 * extent.tokens() * keys_of(attention, extent) * static_cast<double>(attention.width);
  }
  return flop;
}

// The elements of the layer's adapters.
double adapter_weights(const ModelShape& shape, LayerId layer) {
  double weights = 0;
  for (const LinearModule& module : adapted_modules(shape, layer))
    weights += static_cast<double>(shape.lora.rank * (module.in + module.out));
  return weights;
}

double adapter_flop(const ModelShape& shape, LayerId layer, const Extent& extent) {
  double flop = 0;
  for (const LinearModule& module : adapted_modules(shape, layer)) {
    flop += 2 * rows_of(module.of_sources ? Rows::sources : Rows::tokens, extent) *
            static_cast<double>(shape.lora.rank * (module.in + module.out));
  }
  return flop;
}

// A matrix that is not trained has one product, for its input's gradient; all else has two.
double backward_flop_beside(const ModelShape& shape, LayerId layer, const Extent& extent) {
  if (layer < first_trained_layer(shape)) return 0;
  return 2 * (flop_of(shape, layer, extent) + adapter_flop(shape, layer, extent)) -
         product_flop(shape, layer, extent);
}

LayerTokens tokens_of(const Extent& extent) {
  return {static_cast<std::int64_t>(extent.tokens()),
          static_cast<std::int64_t>(extent.batch * extent.source)};
}

double elements_of(const ModelShape& shape, LayerId layer, const Extent& extent) {
  double scores = 0;  // of a token
  for (const Attention& attention : attentions_of(shape, layer)) {
    scores += static_cast<double>(attention.heads) * keys_of(attention, extent);
  }
  const LayerKind& kind = layer_kind(shape, layer);
  const double each_sequence =
      kind.sequence_values != nullptr ? static_cast<double>(kind.sequence_values(shape)) : 0;
  return static_cast<double>(made_widths(made_of(shape, layer), tokens_of(extent))) +
         extent.tokens() * scores + extent.batch * each_sequence;
}

// The elements of the matrices.
double weights_of(const ModelShape& shape, LayerId layer) {
  double weights = 0;
  for (const Product& product : products_of(shape, layer)) {
    weights += static_cast<double>(product.in) * static_cast<double>(product.out);
  }
  return weights;
}

Extent extent_of(const ModelShape& shape, LayerId layer, std::int64_t batch,
                 std::int64_t sequence) {
  const bool is_target = layer_kind(shape, layer).side == Side::target;
  return {static_cast<double>(batch),
          static_cast<double>(is_target ? shape.target_sequence(sequence) : sequence),
          static_cast<double>(sequence)};
}

bool is_embedding(const ModelShape& shape, LayerId layer) {
  return layer_places(shape).is_embedding(layer);
}
// The head, or a piece of its table.
bool is_head(const ModelShape& shape, LayerId layer) { return layer >= layer_places(shape).head(); }

// The depth does not matter to the embedding.
double embedding_parameters(const ModelShape& shape, LayerId layer) {
  return static_cast<double>(shape.with_least_depth().flat_layout().layer(layer).count);
}

}  // namespace

double forward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                    std::int64_t sequence) {
  const Extent extent = extent_of(shape, layer, batch, sequence);
  return flop_of(shape, layer, extent) + adapter_flop(shape, layer, extent);
}

double backward_flop(const ModelShape& shape, LayerId layer, std::int64_t batch,
                     std::int64_t sequence, Activations activations) {
  const double forward = forward_flop(shape, layer, batch, sequence);
  if (shape.has_adapters()) {
    const double backward =
        backward_flop_beside(shape, layer, extent_of(shape, layer, batch, sequence));
    const bool goes_again = backward > 0 && !is_head(shape, layer) && is_recomputed(activations);
    return backward + (goes_again ? forward : 0);
  }
  if (is_embedding(shape, layer)) return forward;
  return (!is_head(shape, layer) && is_recomputed(activations) ? 3 : 2) * forward;
}

double forward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                        std::int64_t sequence) {
  const Extent extent = extent_of(shape, layer, batch, sequence);
  const double elements = elements_of(shape, layer, extent);
  const auto adapted =
      static_cast<double>(made_widths(adapter_made(shape, layer), tokens_of(extent)));
  const double logits = extent.tokens() * static_cast<double>(logit_count(shape, layer));
  return elements + adapted + logits;
}

double backward_elements(const ModelShape& shape, LayerId layer, std::int64_t batch,
                         std::int64_t sequence, Activations activations) {
  const double forward = forward_elements(shape, layer, batch, sequence);
  if (layer < first_trained_layer(shape)) return 0;
  // The logits' gradient takes five sweeps over them where the loss takes three, and its product
  // with what the head got is the slowest there is: counted twice as well, gpt2-124m's head comes
  // out 2 to 7 % too slow forward, counted once 6 to 11 %.
  if (is_head(shape, layer)) return 2 * forward;
  // The results of a layer are gradients of its parameters, copied; a copied value takes about a
  // quarter of one that is computed (gpt2-124m's tables: 39 million in 7 ms).
  const double passes = is_recomputed(activations) ? 3 : 2;
  const double weights =
      shape.has_adapters() ? adapter_weights(shape, layer) : weights_of(shape, layer);
  if (!is_embedding(shape, layer)) return passes * forward + weights / 4;
  const bool keeps_something =
      needed_bytes(made_of(shape, layer), ParameterKind::bf16) > 0;  // a norm's, of the rows
  return embedding_parameters(shape, layer) / 4 + (keeps_something ? passes * forward : 0);
}

}  // namespace sluice::model
