#pragma once
// The seam between the training step and whatever computes forward and backward: layer by layer,
// micro-batch by micro-batch. Implementations: core/model/torch/stack_model.h (libtorch) and the
// tests' arithmetic model. Needs no libtorch itself.
//
// Order of calls in a step of M micro-batches: set_batch(m) for each; then for each layer upwards,
// forward(layer, m) for each m; then for each layer downwards, backward(layer, m) for each m.
// Walking all micro-batches through a layer before the next keeps at most two layers' gradients in
// existence, whatever M is.
//
// Thread contract: one call at a time, from one compute thread (which need not be the caller's of
// the constructor). Errors: libtorch's exceptions are caught at this border and come back as
// Status.

#include <cstdint>
#include <optional>
#include <span>

#include "base/parameter_span.h"
#include "base/status.h"
#include "core/model/activations.h"
#include "core/model/flat_layout.h"
#include "core/model/kept_blocks.h"

namespace sluice::model {

// Where a layer's gradients go: `element_count` values in flat order of the layer. With 16 bits
// there is one micro-batch and the values are written; with fp32 they are added to what is there
// (the caller zeroes it before the first micro-batch).
struct LayerGradient {
  std::uint16_t* values_16bit = nullptr;  // exactly one of the two is set
  float* values_fp32 = nullptr;
  std::int64_t element_count = 0;
};

// The use of a batch: with `validation` nothing is kept for a backward.
enum class BatchUse : std::uint8_t { training, validation };

// A target without weight: it has no loss and no gradient. The number is torch's ignore_index.
inline constexpr std::int32_t kIgnoredTarget = -100;

// Tokens of one micro-batch, row-major (batch, sequence), and for each the token that the model has
// to answer, or kIgnoredTarget; for a model that classifies, a class for each window
// (target_sequence = 1).
struct TokenBatch {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::span<const std::int32_t> inputs;
  std::span<const std::int32_t> targets;
  // The loss is the sum over the targets by this. For a mean over all micro-batches of a step, each
  // has the same: their targets with weight by their number. 0: this batch's own targets.
  double divisor = 0;
  // For each token the column of its window where its document begins: it sees no other document,
  // and its position counts from there. Empty: documents together.
  std::span<const std::int32_t> document_begins = {};
  // A number for each window, below 2^32, that says what training drops of it; none: nothing.
  std::span<const std::uint32_t> drop_keys = {};
  // What a decoder reads, row-major (batch, target_sequence), as `targets` are then; `inputs` are
  // what its encoder reads. 0 and empty: there is none, and targets are as many as inputs.
  std::int64_t target_sequence = 0;
  std::span<const std::int32_t> decoder_inputs = {};
  // For each token of a model that classifies, which of the two texts of a pair it is of: 0 or 1.
  // Empty: 0.
  std::span<const std::int32_t> segments = {};

  std::int64_t target_columns() const { return target_sequence > 0 ? target_sequence : sequence; }
  std::int64_t counted_targets() const;  // those with weight
  double loss_divisor() const;           // `divisor`, or what stands for it; at least 1
};

class TrainableModel {
 public:
  virtual ~TrainableModel() = default;

  virtual const FlatLayout& layout() const = 0;
  virtual ParameterKind parameter_kind() const = 0;
  // The parameters that forward and backward read: parameter_count values in flat order. Written
  // by the offload when updated parameters come back.
  virtual ParameterSpan parameters() = 0;

  // Begins the micro-batch's step; what is left of one that was given up goes. A token that the
  // vocabulary does not have is ErrorCode::config.
  virtual Status set_batch(int micro_step, const TokenBatch& batch, BatchUse use) = 0;
  // The head's forward computes the loss (nats; TokenBatch::divisor says over what the mean is).
  virtual Status forward(LayerId layer, int micro_step) = 0;
  // Gradients of loss * gradient_scale (loss scale / number of micro-batches). The tied table's
  // gradient is complete only with the embedding's backward; until then the part from the head is
  // kept inside the model.
  virtual Status backward(LayerId layer, int micro_step, double gradient_scale,
                          const LayerGradient& into) = 0;
  virtual double loss(int micro_step) const = 0;
  // Targets whose answer is the likeliest one, of a model that classifies, once loss() is known;
  // none: nobody counts them.
  virtual std::optional<std::int64_t> right_answers(int /*micro_step*/) const { return {}; }

  // Between steps: what layers keep from the next set_batch() on. Memory that the last step took
  // for it is given back. Changes no number.
  virtual Status choose_activations(const LayerActivations& activations) = 0;
  // Through which what layers keep leaves memory; null: it stays.
  virtual KeptBlocks* kept_blocks() { return nullptr; }
};

// Loss of a batch without gradients, between steps, as micro-batch 0; of a model that computes in
// host memory.
Result<double> evaluate(TrainableModel& model, const TokenBatch& batch);

}  // namespace sluice::model
