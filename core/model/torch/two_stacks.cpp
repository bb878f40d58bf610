#include "core/model/torch/two_stacks.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/model/lora.h"
#include "core/model/torch/autograd.h"
#include "core/model/torch/check.h"
#include "core/model/torch/rms_norm.h"

namespace sluice::model {
namespace {

constexpr std::array<const char*, 2> kBiasTables = {
    "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
    "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"};
constexpr const char* kEncoderNorm = "encoder.final_layer_norm.weight";

// The bucket of a key `distance` tokens behind its query. The near half of the buckets are of one
// distance each, the others ever wider. In fp32, as Hugging Face has it: the rounding decides where
// one ends.
std::int64_t bucket_of(std::int64_t distance, std::int64_t count, std::int64_t farthest,
                       BiasSees sees) {
  std::int64_t first = 0;
  if (sees == BiasSees::all) {
    count /= 2;
    if (distance > 0) first = count;
    distance = std::abs(distance);
  } else {
    distance = std::max<std::int64_t>(0, -distance);
  }
  const std::int64_t single = count / 2;
  if (distance < single) return first + distance;
  const float steps =
      std::log(static_cast<float>(distance) / static_cast<float>(single)) /
      static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(single))) *
      static_cast<float>(count - single);
  return first + std::min(count - 1, single + static_cast<std::int64_t>(steps));
}

}  // namespace

TwoStacks::TwoStacks(const ModelShape& shape, const ModelOptions& options,
                     const at::TensorOptions& like)
    : shape_(shape),
      trains_tables_(!shape.has_adapters()),
      trains_encoder_(index_of(first_trained_layer(shape)) <= shape.stacks.encoder_layers),
      encoder_rows_(options.batch * options.sequence),
      like_(like),
      stacks_{make_stack(options.sequence, BiasSees::all),
              make_stack(shape.target_sequence(options.sequence), BiasSees::back)},
      norm_gradient_(at::empty({shape.hidden}, like.dtype(at::kFloat))) {}

TwoStacks::Stack TwoStacks::make_stack(std::int64_t longest, BiasSees sees) const {
  const std::int64_t columns = 2 * longest - 1;
  std::vector<std::int64_t> buckets;
  std::vector<float> is_in(static_cast<std::size_t>(shape_.bucket_count() * columns), 0.0F);
  for (std::int64_t column = 0; column < columns; ++column) {
    buckets.push_back(
        bucket_of(column - (longest - 1), shape_.bucket_count(), shape_.bucket_distance(), sees));
    is_in[static_cast<std::size_t>(buckets.back() * columns + column)] = 1;
  }
  const at::TensorOptions wide = like_.dtype(at::kFloat);
  return {
      .buckets = at::tensor(buckets).to(like_.device()),
      .is_in_bucket = at::tensor(is_in).view({shape_.bucket_count(), columns}).to(like_.device()),
      .bias = {.by_distance =
                   at::empty({shape_.heads, columns}, wide).set_requires_grad(trains_tables_),
               .of_pairs = at::empty({shape_.heads, longest, longest}, wide)},
      .gradient = at::empty({shape_.heads, columns}, wide)};
}

std::vector<at::Tensor> TwoStacks::shared_tensors() const {
  std::vector<at::Tensor> tensors;
  for (const Stack& stack : stacks_) {
    tensors.push_back(stack.bias.by_distance);
    tensors.push_back(stack.bias.of_pairs);
  }
  return tensors;
}

at::Tensor TwoStacks::make_room() const { return at::empty({encoder_rows_, shape_.hidden}, like_); }

void TwoStacks::make_biases(const LayerViews& embedding) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < stacks_.size(); ++i) {
    const at::Tensor& table = embedding[kBiasTables.at(i)];  // (buckets, heads)
    stacks_.at(i).bias.by_distance.detach().copy_(
        table.to(at::kFloat).index_select(0, stacks_.at(i).buckets).t());
    fill_pairs(stacks_.at(i).bias, i == 0 ? BiasSees::all : BiasSees::back);
  }
}

void TwoStacks::cross(StackBorder& border, const at::Tensor& output, const LayerViews& embedding,
                      const at::Tensor& room, const Dropout& dropout) const {
  const at::NoGradGuard no_grad;
  border.output = output;
  const at::Tensor place = room.narrow(0, 0, output.size(0));
  place.copy_(
      dropout.of_rows(rms_norm(output, embedding[kEncoderNorm], shape_.norm_eps), drop_place()));
  border.encoded = place.detach().set_requires_grad(trains_encoder_);
}

bool TwoStacks::is_of_decoder(LayerId layer) const {
  return index_of(layer) > shape_.stacks.encoder_layers && index_of(layer) <= shape_.layers;
}

bool TwoStacks::is_first_of_decoder(LayerId layer) const {
  return index_of(layer) == shape_.stacks.encoder_layers + 1;
}

const PositionBias& TwoStacks::bias_of(LayerId layer) const {
  return stacks_[is_of_decoder(layer) ? 1 : 0].bias;
}

std::vector<at::Tensor> TwoStacks::read_by(LayerId layer, const StackBorder& border) const {
  std::vector<at::Tensor> read;
  if (trains_tables_) read.push_back(bias_of(layer).by_distance);
  if (trains_encoder_ && is_of_decoder(layer)) read.push_back(border.encoded);
  return read;
}

void TwoStacks::add(LayerId layer, std::span<const at::Tensor> gradients, StackBorder& border) {
  const at::NoGradGuard no_grad;
  begin_sums();
  if (trains_tables_) stacks_[is_of_decoder(layer) ? 1 : 0].gradient.add_(gradients[0]);
  if (!trains_encoder_ || !is_of_decoder(layer)) return;
  if (border.encoded_gradient.defined()) {
    border.encoded_gradient.add_(gradients.back());
  } else {
    border.encoded_gradient =
        gradients.back().to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
}

// The norm is computed once more: it is cheaper than kept.
at::Tensor TwoStacks::cross_back(StackBorder& border, const LayerViews& embedding,
                                 const Dropout& dropout) {
  const at::Tensor output = std::exchange(border.output, {}).detach().set_requires_grad(true);
  const at::Tensor weight = embedding[kEncoderNorm].detach().set_requires_grad(true);
  const at::Tensor gradient = dropout.of_rows(
      std::exchange(border.encoded_gradient, {}).to(output.scalar_type()), drop_place());
  border.encoded = at::Tensor();
  const at::AutoGradMode watch(true);
  const std::vector<at::Tensor> found =
      differentiate(rms_norm(output, weight, shape_.norm_eps), {output, weight}, gradient);
  const at::NoGradGuard no_grad;
  norm_gradient_.add_(found[1]);
  return found[0];
}

void TwoStacks::begin_sums() {
  if (is_pending_) return;
  is_pending_ = true;
  for (const Stack& stack : stacks_) stack.gradient.zero_();
  norm_gradient_.zero_();
}

void TwoStacks::put(GradientWriter& writer) {
  begin_sums();
  for (const Stack& stack : stacks_) {
    writer.put(at::matmul(stack.is_in_bucket, stack.gradient.t()));
  }
  writer.put(norm_gradient_);
  is_pending_ = false;
}

}  // namespace sluice::model
