#include "core/model/step_memory.h"

#include <algorithm>
#include <numeric>

#include "base/id_vector.h"
#include "core/model/architecture.h"
#include "core/model/compute_device.h"
#include "core/model/dropped_weights.h"
#include "core/model/head_chunk.h"
#include "core/model/kept_bytes.h"
#include "core/model/layer_places.h"
#include "core/model/lora.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

std::int64_t value_bytes(const ModelOptions& options) { return bytes_of(options.compute); }

LayerTokens tokens_of(const ModelShape& shape, const ModelOptions& options, LayerId layer) {
  return layer_tokens(shape, layer, options.batch, options.sequence);
}

LayerId head_of(const ModelShape& shape) { return layer_places(shape).head(); }

std::int64_t row_bytes(const ModelShape& shape, const ModelOptions& options, LayerId layer) {
  return tokens_of(shape, options, layer).own * shape.hidden * value_bytes(options);
}

// Activations that leave memory. There at once are those of the layer that is computed, and those
// that the carrier has on their way (core/activation); or all of them, where that is less.
struct Offloaded {
  std::int64_t all = 0;
  std::int64_t widest = 0;
  std::int64_t on_their_way = 0;

  std::int64_t with(std::int64_t own) const { return std::min(all, own + on_their_way); }
};

std::int64_t offloaded_of(const ModelShape& shape, const ModelOptions& options, LayerId layer) {
  const auto blocks = kept_block_bytes(shape, layer, options.batch, options.sequence,
                                       options.activations.of(layer), options.compute);
  return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
}

Offloaded offloaded(const ModelShape& shape, const ModelOptions& options) {
  Offloaded found;
  for (const LayerId layer : all_ids<LayerId>(layer_places(shape).count())) {
    const std::int64_t bytes = offloaded_of(shape, options, layer);
    found.all += options.micro_step_count * bytes;
    found.widest = std::max(found.widest, bytes);
  }
  const std::int64_t asked_bytes = options.activation_buffer_bytes;
  found.on_their_way = asked_bytes > 0 ? asked_bytes : 2 * found.widest;
  return found;
}

// One for all blocks.
std::int64_t window_mask_bytes(const ModelShape& shape, std::int64_t sequence) {
  return shape.window.limits(shape.layers - 1, sequence) ? sequence * sequence * kFp32Bytes : 0;
}

// The biases of both stacks, one for each pair of positions and head, for all of the run.
std::int64_t position_bias_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (!shape.has_decoder()) return 0;
  const std::int64_t targets = shape.target_sequence(options.sequence);
  return shape.heads * kFp32Bytes * (options.sequence * options.sequence + targets * targets);
}

// ---- inside a layer

// core/model/torch/document_mask.h: a mask, and in two bytes a place where it lies. A classifier
// hides what fills its windows.
std::int64_t document_mask_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (options.documents == Documents::together && !shape.classifies()) return 0;
  return options.sequence * options.sequence * (kFp32Bytes + 2);
}

// What attention with biases has in fp32 at once, in backward
// (core/model/torch/biased_attention.h): the sums over windows, and of one window two arrays of
// scores and five like queries or keys.
std::int64_t biased_attention_bytes(const ModelShape& shape, LayerTokens tokens,
                                    std::int64_t batch) {
  const std::int64_t queries = tokens.own / batch;
  const std::int64_t keys = std::max(queries, tokens.source / batch);
  const std::int64_t scores = shape.heads * queries * keys;
  return kFp32Bytes * (3 * scores + (queries + 4 * keys) * shape.attention_width());
}

// What backward of an attention has beside the gradients of queries, keys and values. A family
// whose heads share keys computes them a window at a time.
std::int64_t attention_bytes(const ModelShape& shape, const ModelOptions& options,
                             LayerTokens tokens, Products products) {
  if (shape.has_decoder()) return biased_attention_bytes(shape, tokens, options.batch);
  const std::int64_t mask = document_mask_bytes(shape, options);
  if (shape.dropout.attention > 0)
    return mask + dropped_attention_bytes(options.sequence, shape.heads);
  if (products == Products::widened)
    return mask +
           widened_attention_bytes({options.batch, options.sequence}, shape.attention_width());
  return mask + options.sequence * (3 * shape.attention_width() * value_bytes(options) +
                                    shape.kv_width() * kFp32Bytes);
}

struct LayerMemory {
  std::int64_t kept = 0;
  BackwardBytes backward;
  BackwardBytes offloaded_backward;

  const BackwardBytes& backward_of(Activations choice) const {
    return is_offloaded(choice) && !is_recomputed(choice) ? offloaded_backward : backward;
  }
};

LayerMemory layer_memory(const ModelShape& shape, const ModelOptions& options, LayerId layer,
                         Products products) {
  const LayerTokens tokens = tokens_of(shape, options, layer);
  LayerTape tape({.tokens = tokens,
                  .precision = options.compute,
                  .products = products,
                  .attention_bytes = attention_bytes(shape, options, tokens, products),
                  .trains_weights = !shape.has_adapters()});
  layer_kind(shape, layer).record(tape, shape);
  const AdapterWidths adapters = adapter_widths(shape);
  LayerMemory memory{memory_bytes(made_of(shape, layer), options.compute, tokens),
                     tape.backward_bytes(), tape.backward_bytes(LayerTape::Kept::stays)};
  const std::int64_t rows = std::max(tokens.own, tokens.source);
  memory.kept += rows * adapters.kept * value_bytes(options);
  const std::int64_t passing = rows * adapters.passing * value_bytes(options);
  memory.backward.most += passing;
  memory.offloaded_backward.most += passing;
  return memory;
}

// ---- the head

// The gradient of the output table, or of a piece of it: one product; or an fp32 sum and the slice
// of a product that is being added to it, as it is and widened.
std::int64_t output_gradient_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (shape.has_adapters()) return 0;  // the table is not trained
  if (head_is_one_product(shape, options))
    return widest_logits(shape) * shape.hidden * value_bytes(options);
  return widest_logits(shape) * shape.hidden * kFp32Bytes;
}

// A product for it, with what the product has beside itself.
std::int64_t output_product_bytes(const ModelShape& shape, const ModelOptions& options,
                                  std::int64_t chunk, Products products) {
  if (shape.has_adapters()) return 0;
  const bool is_one = head_is_one_product(shape, options);
  const std::int64_t rows =
      is_one ? widest_logits(shape) : std::min(widest_logits(shape), kTiedSliceRows);
  const std::int64_t values = rows * shape.hidden;
  const std::int64_t beside =
      product_beside_bytes(products, options.compute, chunk * (rows + shape.hidden), values);
  if (is_one) return beside;
  const bool widens = has_16_bits(options.compute);  // as it is added
  return values * value_bytes(options) + std::max(beside, widens ? values * kFp32Bytes : 0);
}

// Pieces of the loss in fp32 where the processor computes (core/model/torch/head_loss.cpp).
std::int64_t loss_piece_bytes(const ModelShape& shape, std::int64_t chunk) {
  return std::min(chunk * widest_logits(shape),
                  std::max(kLossPieceElements, widest_logits(shape))) *
         kFp32Bytes;
}

struct HeadMemory {
  std::int64_t kept = 0;
  std::int64_t forward = 0;   // beside what is kept
  std::int64_t backward = 0;  // the same
};

// A piece of the output table. The head's rows stay until all of them have gone back; each piece
// adds to the gradient of those, in fp32.
HeadMemory piece_memory(const ModelShape& shape, const ModelOptions& options, Products products) {
  const LayerPlaces places = layer_places(shape);
  const std::int64_t chunk =
      std::min(tokens_of(shape, options, places.last()).own, head_chunk_tokens(places.piece_rows));
  const std::int64_t logits = chunk * places.piece_rows;
  const std::int64_t table = places.piece_rows * shape.hidden;
  const std::int64_t rows = chunk * shape.hidden;
  const std::int64_t piece = loss_piece_bytes(shape, chunk);
  const auto beside = [&](std::int64_t factors, std::int64_t result) {
    return product_beside_bytes(products, options.compute, factors, result);
  };
  const std::int64_t widened = has_16_bits(options.compute) ? rows * kFp32Bytes : 0;
  const std::int64_t of_rows =
      rows * value_bytes(options) + std::max(widened, beside(logits + table, rows));
  const std::int64_t gradient = output_gradient_bytes(shape, options);
  // A later chunk finds the piece's gradient there.
  const std::int64_t there = chunk < tokens_of(shape, options, places.last()).own ? gradient : 0;
  HeadMemory memory = {0, std::max(beside(table + rows, logits), 2 * piece),
                       std::max(there + std::max(piece, of_rows),
                                gradient + output_product_bytes(shape, options, chunk, products))};
  if (!is_recomputed(options.activations.of(places.last()))) return memory;
  const std::int64_t made_anew = logits * value_bytes(options);
  memory.forward += made_anew;
  memory.backward = made_anew + std::max(memory.backward, there + beside(table + rows, logits));
  return memory;
}

// With its rows' gradient, and from the first chunk on that of a table of its own.
HeadMemory head_memory(const ModelShape& shape, const ModelOptions& options, Products products) {
  const LayerId head = head_of(shape);
  const LayerMemory layer = layer_memory(shape, options, head, products);
  const std::int64_t row = row_bytes(shape, options, head);
  const std::int64_t chunk =
      std::min(tokens_of(shape, options, head).own, head_chunk_tokens(answer_count(shape)));
  const std::int64_t logits = chunk * answer_count(shape);
  const std::int64_t table = answer_count(shape) * shape.hidden;
  const std::int64_t rows = chunk * shape.hidden;
  const std::int64_t piece = loss_piece_bytes(shape, chunk);
  const auto beside = [&](std::int64_t factors, std::int64_t result) {
    return product_beside_bytes(products, options.compute, factors, result);
  };
  const std::int64_t own_table =
      shape.has_own_output_table() ? output_gradient_bytes(shape, options) : 0;
  HeadMemory memory = {layer.kept, std::max(beside(table + rows, logits), 2 * piece),
                       row + own_table +
                           std::max({piece, beside(logits + table, rows),
                                     output_product_bytes(shape, options, chunk, products),
                                     layer.backward_of(options.activations.of(head)).most})};
  if (!is_recomputed(options.activations.of(head))) return memory;
  const std::int64_t made_anew = logits * value_bytes(options);
  memory.forward += row + made_anew;
  // Logits of a later chunk find the table's gradient there.
  const std::int64_t there = head_is_one_product(shape, options) ? 0 : own_table;
  memory.backward = memory.kept + made_anew +
                    std::max(memory.backward, row + there + beside(table + rows, logits));
  memory.kept = 0;
  return memory;
}

// A head whose output table is layers of its own is a norm, whose output they keep.
HeadMemory cut_head_memory(const ModelShape& shape, const ModelOptions& options,
                           Products products) {
  const LayerId head = head_of(shape);
  const LayerMemory layer = layer_memory(shape, options, head, products);
  const std::int64_t row = row_bytes(shape, options, head);
  const std::int64_t rows_gradient = row / value_bytes(options) * kFp32Bytes + row;
  const std::int64_t backward =
      rows_gradient + layer.backward_of(options.activations.of(head)).most;
  if (is_recomputed(options.activations.of(head))) return {0, row, layer.kept + backward};
  return {layer.kept, 0, backward};
}

// ---- a step

// The memory of a step's tensors, from phase to phase. Each layer goes forward with all
// micro-batches before the next does, and backward likewise.
class StepMemory {
 public:
  StepMemory(const ModelShape& shape, const ModelOptions& options, Products products)
      : shape_(shape),
        options_(options),
        products_(products),
        places_(layer_places(shape)),
        head_(places_.are_tables_cut() ? cut_head_memory(shape, options, products)
                                       : head_memory(shape, options, products)),
        block_(layer_memory(shape, options, places_.first_block(), products)),
        decoder_block_(shape.has_decoder() ? layer_memory(shape, options, last_block(), products)
                                           : block_),
        offloaded_(offloaded(shape, options)) {}

  StepPeak peak() const {
    Phase most = head_phase();
    const auto consider = [&most](const Phase& next) {
      if (next.bytes() > most.bytes()) most = next;
    };
    if (places_.are_tables_cut()) consider(output_phase());
    for (LayerId layer = places_.head(); layer > places_.first_block();) {
      layer = LayerId{index_of(layer) - 1};
      consider(block_phase(layer));
    }
    consider(places_.are_tables_cut() ? embedding_pieces_phase() : embedding_phase());
    return {.kept_bytes = most.kept,
            .offloaded_bytes = offloaded_.with(offloaded_.widest),
            .beside_bytes = most.beside,
            .tied_gradient_bytes =
                shape_.has_own_output_table() ? 0 : output_gradient_bytes(shape_, options_)};
  }

 private:
  struct Phase {
    std::int64_t kept = 0;  // of all micro-batches
    std::int64_t beside = 0;
    std::int64_t bytes() const { return kept + beside; }
  };

  LayerId last_block() const { return LayerId{index_of(places_.head()) - 1}; }
  bool is_of_decoder(LayerId layer) const {
    return shape_.has_decoder() && places_.block_of(layer) >= shape_.stacks.encoder_layers;
  }
  const LayerMemory& block(LayerId layer) const {
    return is_of_decoder(layer) ? decoder_block_ : block_;
  }
  std::int64_t source_values() const {
    return shape_.has_decoder() ? options_.batch * options_.sequence * shape_.hidden : 0;
  }

  // Between forward and backward of a block, with its output.
  std::int64_t kept_of(LayerId layer) const {
    switch (options_.activations.of(layer)) {
      case Activations::keep:
        return block(layer).kept;
      case Activations::recompute:
        return row_bytes(shape_, options_, layer);
      default:
        return 0;  // offloaded_
    }
  }
  // What is there of a micro-batch for all of the step: numbers, logits, encoder's output.
  std::int64_t room() const {
    const std::int64_t tokens = tokens_of(shape_, options_, head_of(shape_)).own;
    const std::int64_t of_row = places_.are_tables_cut() ? 2 * kFp32Bytes : kFp32Bytes;  // loss
    std::int64_t bytes = batch_bytes(shape_, options_.batch, options_.sequence) + tokens * of_row +
                         source_values() * value_bytes(options_);
    for (LayerId layer = places_.head(); layer <= places_.last();
         layer = LayerId{index_of(layer) + 1}) {
      if (!is_recomputed(options_.activations.of(layer)))
        bytes += tokens * logit_count(shape_, layer) * value_bytes(options_);
    }
    return bytes;
  }
  // The outputs of the embedding, and of the layers below one and of itself.
  std::int64_t kept_up_to(LayerId layer) const {
    std::int64_t bytes = options_.batch * shape_.looked_up_sequence(options_.sequence) *
                         shape_.hidden * value_bytes(options_);
    for (LayerId below = places_.first_block(); below <= layer;
         below = LayerId{index_of(below) + 1}) {
      bytes += kept_of(below);
    }
    return bytes;
  }
  // While a layer is computed.
  std::int64_t kept_of_all(LayerId layer, std::int64_t of_micro_batch) const {
    return options_.micro_step_count * (room() + of_micro_batch) +
           offloaded_.with(offloaded_of(shape_, options_, layer)) +
           window_mask_bytes(shape_, options_.sequence) + position_bias_bytes(shape_, options_);
  }

  Phase head_phase() const {
    const LayerId head = head_of(shape_);
    const bool leaves = is_offloaded(options_.activations.of(head));
    return {kept_of_all(head, kept_up_to(last_block()) + (leaves ? 0 : head_.kept)),
            std::max(head_.forward, head_.backward)};
  }

  // The rows that the pieces of the output table read, and with all of them their gradient.
  Phase output_phase() const {
    const std::int64_t row = row_bytes(shape_, options_, places_.head());
    const HeadMemory piece = piece_memory(shape_, options_, products_);
    const std::int64_t kept = kept_up_to(last_block()) + std::max(row, head_kept());
    const std::int64_t gradient = row / value_bytes(options_) * kFp32Bytes;
    return {kept_of_all(places_.last(), kept + gradient), std::max(piece.forward, piece.backward)};
  }
  std::int64_t head_kept() const {
    return is_offloaded(options_.activations.of(places_.head())) ? 0 : head_.kept;
  }

  // Each micro-batch has a gradient of the stream; the encoder's output receives one in fp32 from
  // the decoder's blocks, whose first one leaves that of what it looked up.
  Phase block_phase(LayerId layer) const {
    const LayerMemory& memory = block(layer);
    std::int64_t kept = kept_up_to(layer) + row_bytes(shape_, options_, layer);
    if (is_of_decoder(layer)) {
      kept += source_values() * kFp32Bytes;
    } else if (shape_.has_decoder()) {
      kept += row_bytes(shape_, options_, last_block());
    }
    const Activations choice = options_.activations.of(layer);
    const BackwardBytes& backward = memory.backward_of(choice);
    std::int64_t beside = std::max(backward.most, backward.at_end + widened_gradient_bytes(layer));
    if (is_recomputed(choice)) beside += memory.kept;
    if (choice == Activations::recompute)
      kept -= row_bytes(shape_, options_, layer);  // the output is made anew
    return {kept_of_all(layer, kept), beside};
  }

  // Gradients that are added in fp32 are widened a tensor at a time.
  std::int64_t widened_gradient_bytes(LayerId layer) const {
    if (!options_.adds_gradients() || !has_16_bits(options_.compute)) return 0;
    std::int64_t largest = 0;
    const ModelShape asked = shape_.has_adapters() ? shape_ : shape_.with_least_depth();
    const LayerId like = shape_.has_adapters()  ? layer
                         : is_of_decoder(layer) ? LayerId{static_cast<std::int32_t>(asked.layers)}
                                                : places_.first_block();
    for (const TensorInfo& tensor : asked.flat_layout().tensors) {
      if (tensor.layer == like) largest = std::max(largest, tensor.count);
    }
    return largest * kFp32Bytes;
  }

  // The gradient of what was looked up in fp32, and its sums by token, as they are and as they are
  // written.
  Phase embedding_phase() const {
    const std::int64_t rows = options_.batch * shape_.looked_up_sequence(options_.sequence);
    const std::int64_t sums = std::min(rows, shape_.vocabulary);
    const std::int64_t kept = rows * shape_.hidden * value_bytes(options_);
    return {kept_of_all(LayerId{0}, kept),
            shape_.hidden * (2 * rows * kFp32Bytes + sums * (kFp32Bytes + value_bytes(options_)))};
  }

  // The sums by token of every micro-batch, which the pieces take in turn.
  Phase embedding_pieces_phase() const {
    const std::int64_t values = options_.batch * options_.sequence * shape_.hidden;
    return {kept_of_all(LayerId{0}, values * kFp32Bytes),
            values * (kFp32Bytes + value_bytes(options_))};
  }

  const ModelShape& shape_;
  const ModelOptions& options_;
  Products products_;
  LayerPlaces places_;
  HeadMemory head_;
  LayerMemory block_;
  LayerMemory decoder_block_;
  Offloaded offloaded_;
};

}  // namespace

StepPeak step_peak(const ModelShape& shape, const ModelOptions& options, Products products) {
  return StepMemory(shape, options, products).peak();
}

}  // namespace sluice::model
