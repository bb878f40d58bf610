// The memory plan of the model. The counts of values a token are those of block.cpp's graph, one
// line each; the two measured numbers say how. tests/core/model/gpt2/gpt2_memory_test.cpp holds all
// of it against the process's peak, from both sides.

#include <algorithm>
#include <numeric>

#include "base/id_vector.h"
#include "core/model/gpt2/gpt2.h"
#include "core/model/kept_bytes.h"
#include "core/model/torch/attention.h"
#include "core/model/torch/dtype.h"
#include "core/model/torch/head_chunk.h"
#include "core/model/torch/products.h"

namespace sluice::model {
namespace {

constexpr std::int64_t k16BitBytes = 2;
constexpr std::int64_t kFp32Bytes = 4;

// libtorch loaded, its thread pool and oneDNN's generated kernels: 143 MB for the smallest model
// (bench_model tiny.toml --batch 1 --sequence 8, libtorch 2.13, two threads), 157 MB with the
// kernels of gpt2-124m's shapes.
constexpr std::int64_t kLibraryBytes = 165'000'000;

// Where products are widened, oneDNN is not asked, but the pieces are there: 125 to 141 MB.
constexpr std::int64_t kWideningLibraryBytes = 152'000'000;

// Pieces of the loss in fp32 and small tensors.
constexpr std::int64_t kSmallBytes = 8 << 20;

// Values of width `hidden` that a block keeps for its backward, a token: 2 normalised inputs, 2
// with weight and bias, 3 query-key-value, 2 attention's result (as it comes and as rows), 1
// residual stream in the middle, 4 + 4 the MLP before and after gelu, 1 output.
constexpr std::int64_t kKeptWidths = 19;

// The same for what comes and goes in a block's backward: gradients of the widest kept values, and
// attention's.
constexpr std::int64_t kBackwardWidths = 24;

bool widens(const ModelOptions& options) {
  return widens_products(dtype_of(options.compute), at::kCPU);
}

std::int64_t block_kept_bytes(const ModelShape& shape, std::int64_t tokens) {
  const std::int64_t row_statistics = 2 * 2 * kFp32Bytes + shape.heads * kFp32Bytes;
  return tokens * (kKeptWidths * shape.hidden * k16BitBytes + row_statistics);
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
  const std::int64_t tokens = options.batch * options.sequence;
  const std::int64_t row = tokens * shape.hidden * k16BitBytes;
  return is_recomputed(options.activations.of(head_of(shape)))
             ? row
             : 3 * row + tokens * shape.vocabulary * k16BitBytes;
}

// What leaves memory: all of it, or what the carrier has in memory at once (core/activation) and
// the layer that is computed.
std::int64_t offloaded_bytes(const ModelShape& shape, const ModelOptions& options) {
  std::int64_t all = 0;
  std::int64_t widest = 0;
  for (const LayerId layer : all_ids<LayerId>(index_of(head_of(shape)) + 1)) {
    const auto blocks = kept_block_bytes(shape, layer, options.batch, options.sequence,
                                         options.activations.of(layer));
    const std::int64_t bytes = std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    all += options.micro_step_count * bytes;
    widest = std::max(widest, bytes);
  }
  const std::int64_t asked_bytes = options.activation_buffer_bytes;
  return std::min(all, widest + (asked_bytes > 0 ? asked_bytes : 2 * widest));
}

std::int64_t activation_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t tokens = options.batch * options.sequence;
  const std::int64_t row = tokens * shape.hidden * k16BitBytes;
  const std::int64_t numbers = batch_bytes(tokens) + tokens * kFp32Bytes;  // and log sums
  std::int64_t layers = head_kept_bytes(shape, options);
  for (std::int32_t l = 1; l <= shape.layers; ++l) {
    const Activations choice = options.activations.of(LayerId{l});
    if (choice == Activations::keep) layers += block_kept_bytes(shape, tokens);
    if (choice == Activations::recompute) layers += row;
  }
  return options.micro_step_count * (row + layers + numbers) + offloaded_bytes(shape, options);
}

std::int64_t attention_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (!widens(options)) return 0;
  return widened_attention_bytes({options.batch, options.sequence}, shape.hidden);
}

// A block's backward: the gradients of all its tensors are there before the first is handed over;
// what is added in fp32 is widened first, a tensor at a time.
std::int64_t block_temporary_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t tokens = options.batch * options.sequence;
  const std::int64_t gradients = 12 * shape.hidden * shape.hidden + 13 * shape.hidden;
  const std::int64_t recomputed =
      is_any_recomputed(shape, options) ? block_kept_bytes(shape, tokens) : 0;
  const std::int64_t widened =
      options.micro_step_count > 1 ? 4 * shape.hidden * shape.hidden * kFp32Bytes : 0;
  return gradients * k16BitBytes + widened + recomputed + attention_bytes(shape, options) +
         tokens * shape.hidden * kBackwardWidths * k16BitBytes;
}

std::int64_t head_temporary_bytes(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t tokens = options.batch * options.sequence;
  const std::int64_t chunk = std::min(tokens, kHeadChunkTokens);
  const std::int64_t logits = is_recomputed(options.activations.of(head_of(shape)))
                                  ? chunk * shape.vocabulary * k16BitBytes
                                  : 0;
  return logits + 4 * tokens * shape.hidden * k16BitBytes;
}

std::int64_t embedding_temporary_bytes(const ModelShape& shape, const ModelOptions& options) {
  return options.batch * options.sequence * shape.hidden * 3 * kFp32Bytes;
}

// One 16-bit product; or an fp32 sum and the slice of a product that is being added to it, in 16
// bits and widened.
std::int64_t tied_gradient_bytes(const ModelShape& shape, const ModelOptions& options) {
  if (head_is_one_product(options)) return shape.vocabulary * shape.hidden * k16BitBytes;
  const std::int64_t slice = std::min(shape.vocabulary, kTiedSliceRows);
  return shape.vocabulary * shape.hidden * kFp32Bytes +
         slice * shape.hidden * (k16BitBytes + kFp32Bytes);
}

}  // namespace

ComputeMemory gpt2_memory(const ModelShape& shape, const ModelOptions& options) {
  const std::int64_t temporary =
      std::max({block_temporary_bytes(shape, options), head_temporary_bytes(shape, options),
                embedding_temporary_bytes(shape, options)});
  return {.library_bytes = widens(options) ? kWideningLibraryBytes : kLibraryBytes,
          .activation_bytes = activation_bytes(shape, options),
          .temporary_bytes = temporary + kSmallBytes,
          .tied_gradient_bytes = tied_gradient_bytes(shape, options),
          .offloaded_bytes = offloaded_bytes(shape, options)};
}

}  // namespace sluice::model
