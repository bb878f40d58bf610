// The memory plan of the model, of any family: plans and simulations ask for families that nothing
// here computes, too. Values a token are those of the table (core/model/architecture.h); the two
// measured numbers say how they were measured. tests/core/model/memory/memory_test.cpp holds all of
// it against the process's peak, from both sides.

#include "core/model/compute_memory.h"

#include <algorithm>
#include <numeric>

#include "base/id_vector.h"
#include "core/model/architecture.h"
#include "core/model/compute_device.h"
#include "core/model/dropped_weights.h"
#include "core/model/head_chunk.h"
#include "core/model/kept_bytes.h"
#include "core/model/lora.h"
#include "core/model/widened_pieces.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kWideValueBytes = 4;  // in fp32

std::int64_t value_bytes(const ModelOptions& options) { return bytes_of(options.compute); }

// libtorch loaded, its thread pool and oneDNN's generated kernels: 143 MB for the smallest model
// (bench_model tiny.toml --batch 1 --sequence 8, libtorch 2.13, two threads), 157 MB with the
// kernels of gpt2-124m's shapes.
constexpr std::int64_t kLibraryBytes = 165'000'000;

// Where products are widened, oneDNN is not asked, but the pieces are there: 125 to 141 MB.
constexpr std::int64_t kWideningLibraryBytes = 152'000'000;

// Pieces of the loss in fp32 and small tensors.
constexpr std::int64_t kSmallBytes = 8 << 20;

// Values of width `hidden` that come and go in a block's backward, beside the gradients of what the
// MLP keeps: attention's, in fp32 too, and the norms'.
constexpr std::int64_t kBackwardWidths = 16;

LayerTokens tokens_of(const ModelShape& shape, const ModelOptions& options, LayerId layer) {
  return layer_tokens(shape, layer, options.batch, options.sequence);
}

std::int64_t block_kept_bytes(const ModelShape& shape, const ModelOptions& options, LayerId layer) {
  const LayerTokens tokens = tokens_of(shape, options, layer);
  return memory_bytes(layer_kind(shape, layer).made(shape), options.compute, tokens) +
         std::max(tokens.own, tokens.source) * adapter_widths(shape).kept * value_bytes(options);
}

// A block of each kind; a decoder's is the last one.
std::vector<LayerId> block_kinds(const ModelShape& shape) {
  std::vector<LayerId> kinds = {LayerId{1}};
  if (shape.has_decoder()) kinds.push_back(LayerId{static_cast<std::int32_t>(shape.layers)});
  return kinds;
}

bool is_any_recomputed(const ModelShape& shape, const ModelOptions& options) {
  for (const LayerId layer : all_ids<LayerId>(static_cast<std::int32_t>(shape.layers) + 1)) {
    if (is_recomputed(options.activations.of(layer))) return true;
  }
  return false;
}

LayerId head_of(const ModelShape& shape) {
  return LayerId{static_cast<std::int32_t>(shape.layers) + 1};
}

std::int64_t head_kept_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t tokens = tokens_of(shape, options, head_of(shape)).own;
  const std::int64_t row = tokens * shape.hidden * value_bytes(options);
  if (is_recomputed(options.activations.of(head_of(shape)))) return row;
  const std::int64_t values =
      made_widths(architecture_of(shape).head.made(shape)) + shape.vocabulary;
  return row + tokens * values * value_bytes(options);
}

// The bytes in memory of activations that leave it: all of them, or those that the carrier has
// there at once (core/activation) and the layer that is computed.
std::int64_t offloaded_bytes(const ModelShape& shape, const ModelOptions& options) {
  std::int64_t all = 0;
  std::int64_t widest = 0;
  for (const LayerId layer : all_ids<LayerId>(index_of(head_of(shape)) + 1)) {
    const auto blocks = kept_block_bytes(shape, layer, options.batch, options.sequence,
                                         options.activations.of(layer), options.compute);
    const std::int64_t bytes = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    all += options.micro_step_count * bytes;
    widest = std::max(widest, bytes);
  }
  const std::int64_t asked_bytes = options.activation_buffer_bytes;
  return std::min(all, widest + (asked_bytes > 0 ? asked_bytes : 2 * widest));
}

// One for all blocks.
std::int64_t window_mask_bytes(const ModelShape& shape, std::int64_t sequence) {
  return shape.window.limits(shape.layers - 1, sequence) ? sequence * sequence * kWideValueBytes
                                                         : 0;
}

// Between encoder and decoder of a micro-batch: the encoder's output before its norm and behind it,
// the latter's gradient in fp32, and that of what the decoder looked up.
std::int64_t border_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (!shape.has_decoder()) return 0;
  const LayerTokens tokens = tokens_of(shape, options, head_of(shape));
  return shape.hidden * (tokens.source * (2 * value_bytes(options) + kWideValueBytes) +
                         tokens.own * value_bytes(options));
}

// The biases of both stacks, one for each pair of positions and head, for all of the run.
std::int64_t position_bias_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (!shape.has_decoder()) return 0;
  const std::int64_t targets = shape.target_sequence(options.sequence);
  return shape.heads * kWideValueBytes * (options.sequence * options.sequence + targets * targets);
}

std::int64_t activation_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t tokens = options.batch * options.sequence;
  const std::int64_t numbers = batch_bytes(shape, options.batch, options.sequence) +
                               tokens_of(shape, options, head_of(shape)).own * kWideValueBytes;
  std::int64_t layers = head_kept_bytes(shape, options);
  for (std::int32_t l = 1; l <= shape.layers; ++l) {
    const Activations choice = options.activations.of(LayerId{l});
    if (choice == Activations::keep) layers += block_kept_bytes(shape, options, LayerId{l});
    if (choice == Activations::recompute) {
      layers += tokens_of(shape, options, LayerId{l}).own * shape.hidden * value_bytes(options);
    }
  }
  const std::int64_t embedding =
      tokens * memory_bytes(architecture_of(shape).embedding.made(shape), options.compute);
  return options.micro_step_count * (embedding + layers + numbers + border_bytes(shape, options)) +
         offloaded_bytes(shape, options) + window_mask_bytes(shape, options.sequence) +
         position_bias_bytes(shape, options);
}

// What attention with biases has in fp32 at once, in backward
// (core/model/torch/biased_attention.h): of one window six arrays of scores, of which one is twice
// as wide, and seven like queries.
std::int64_t biased_attention_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t longest = std::max(options.sequence, shape.target_sequence(options.sequence));
  return kWideValueBytes * longest * (8 * shape.heads * longest + 7 * shape.attention_width());
}

std::int64_t attention_bytes(const ModelShape& shape, const ModelOptions& options,
                             Products products) {
  if (shape.has_decoder()) return biased_attention_bytes(shape, options);
  if (shape.dropout.attention > 0) return dropped_attention_bytes(options.sequence, shape.heads);
  if (products != Products::widened) return 0;
  return widened_attention_bytes({options.batch, options.sequence}, shape.attention_width());
}

// core/model/torch/document_mask.h: a mask, and in two bytes a place where it lies.
std::int64_t document_mask_bytes(const ModelOptions& options) {
  if (options.documents == Documents::together) return 0;
  return options.sequence * options.sequence * (kWideValueBytes + 2);
}

struct KeptTensors {
  std::int64_t all = 0;  // elements
  std::int64_t largest = 0;
};

// The largest of all kinds of blocks; a few of them may have adapters.
KeptTensors tensors_of_blocks(const ModelShape& shape) {
  const ModelShape asked = shape.has_adapters() ? shape : shape.with_least_depth();
  const FlatLayout layout = asked.flat_layout();
  KeptTensors found;
  for (const TensorInfo& tensor : layout.tensors) {
    if (index_of(tensor.layer) == 0 || index_of(tensor.layer) > asked.layers) continue;
    found.all = std::max(found.all, layout.layer(tensor.layer).count);
    found.largest = std::max(found.largest, tensor.count);
  }
  return found;
}

// A block's backward: the gradients of all its tensors are there before the first is handed over;
// what is added in fp32 is widened first, a tensor at a time, where it is not in fp32 already.
std::int64_t block_temporary_bytes(const ModelShape& shape, const ModelOptions& options,
                                   Products products) {
  const KeptTensors block = tensors_of_blocks(shape);
  std::int64_t recomputed = 0;
  std::int64_t tokens = 0;
  for (const LayerId layer : block_kinds(shape)) {
    if (is_any_recomputed(shape, options))
      recomputed = std::max(recomputed, block_kept_bytes(shape, options, layer));
    tokens = std::max(tokens, tokens_of(shape, options, layer).own);
  }
  const bool is_widened = options.adds_gradients() && has_16_bits(options.compute);
  const std::int64_t widened = is_widened ? block.largest * kWideValueBytes : 0;
  const std::int64_t widths =
      kBackwardWidths * std::max(shape.hidden, shape.has_decoder() ? shape.attention_width() : 0) +
      architecture_of(shape).mlp_tensors * shape.mlp_width() + adapter_widths(shape).passing;
  return block.all * value_bytes(options) + widened + recomputed +
         attention_bytes(shape, options, products) + document_mask_bytes(options) +
         tokens * widths * value_bytes(options);
}

// One product; or an fp32 sum and the slice of a product that is being added to it, as it is and
// widened.
std::int64_t output_gradient_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (shape.has_adapters()) return 0;  // the table is not trained
  if (head_is_one_product(shape, options))
    return shape.vocabulary * shape.hidden * value_bytes(options);
  const std::int64_t slice = std::min(shape.vocabulary, kTiedSliceRows);
  return shape.vocabulary * shape.hidden * kWideValueBytes +
         slice * shape.hidden * (value_bytes(options) + kWideValueBytes);
}

// The products of the head are the largest: logits, and the gradient of the table or a slice of it.
// A vocabulary of 151,936 in a model 64 wide took 217 MB more than a plan without their sums.
std::int64_t product_sum_bytes(const ModelShape& shape, const ModelOptions& options,
                               std::int64_t chunk, Products products) {
  if (products != Products::summed_apart) return 0;
  const std::int64_t rows = shape.has_adapters() ? 0
                            : head_is_one_product(shape, options)
                                ? shape.vocabulary
                                : std::min(shape.vocabulary, kTiedSliceRows);
  return std::max(chunk * shape.vocabulary, rows * shape.hidden) * kWideValueBytes;
}

std::int64_t head_temporary_bytes(const ModelShape& shape, const ModelOptions& options,
                                  Products products) {
  const std::int64_t tokens = tokens_of(shape, options, head_of(shape)).own;
  const std::int64_t chunk = std::min(tokens, head_chunk_tokens(shape.vocabulary));
  const std::int64_t logits = is_recomputed(options.activations.of(head_of(shape)))
                                  ? chunk * shape.vocabulary * value_bytes(options)
                                  : 0;
  const std::int64_t own_table =
      shape.has_own_output_table() ? output_gradient_bytes(shape, options) : 0;
  return logits + own_table + product_sum_bytes(shape, options, chunk, products) +
         4 * tokens * shape.hidden * value_bytes(options);
}

// A layer begins in its place where it does in a cache line.
std::int64_t base_bytes(const ModelShape& shape, const ModelOptions& options) {
  constexpr std::int64_t kLineBytes = 64;
  if (!shape.has_adapters()) return 0;
  const FlatLayout base = shape.base_layout();
  if (!options.base_comes_by_layer) return base.parameter_count * value_bytes(options);
  const std::int64_t tables = base.layers.front().count;
  const std::int64_t places = tables + 2 * base.largest_after_first();
  return places * value_bytes(options) + 2 * kLineBytes;
}

std::int64_t embedding_temporary_bytes(const ModelShape& shape, const ModelOptions& options) {
  return options.batch * shape.looked_up_sequence(options.sequence) * shape.hidden * 3 *
         kWideValueBytes;
}

}  // namespace

ComputeMemory compute_memory(const ModelShape& shape, const ModelOptions& options,
                             Products products) {
  const std::int64_t temporary = std::max({block_temporary_bytes(shape, options, products),
                                           head_temporary_bytes(shape, options, products),
                                           embedding_temporary_bytes(shape, options)});
  return {.library_bytes = products == Products::widened ? kWideningLibraryBytes : kLibraryBytes,
          .activation_bytes = activation_bytes(shape, options),
          .temporary_bytes = temporary + kSmallBytes,
          .tied_gradient_bytes =
              shape.has_own_output_table() ? 0 : output_gradient_bytes(shape, options),
          .offloaded_bytes = offloaded_bytes(shape, options),
          .base_bytes = base_bytes(shape, options)};
}

MemoryItems compute_items(const ComputeMemory& memory) {
  return {{"activations", memory.activation_bytes},
          {"temporaries of the widest layer", memory.temporary_bytes},
          {"gradient of the tied table", memory.tied_gradient_bytes}};
}

MemoryItems host_items(const ComputeMemory& memory) {
  MemoryItems items = {{"program and libraries", memory.library_bytes}};
  for (MemoryItem& item : compute_items(memory)) items.push_back(std::move(item));
  return items;
}

}  // namespace sluice::model
