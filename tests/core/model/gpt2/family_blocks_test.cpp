// A block of each family in libtorch, written down here, against the bytes that its row of
// core/model/architecture.h keeps. A llama's are the same block by block. libtorch's own RMSNorm is
// several operations on a processor, so that of a llama's block is one, as on a GPU.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <numeric>

#include "core/model/kept_bytes.h"
#include "core/model/torch/saved_blocks.h"
#include "core/model/torch/saved_tensors.h"
#include "core/model/torch/tensor_memory.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kBatch = 2;

struct FusedRmsNorm : torch::autograd::Function<FusedRmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor scale = at::rsqrt((wide * wide).mean({-1}, true) + 1e-6);
    context->save_for_backward({x, scale});
    return (wide * scale).to(x.scalar_type());
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    return {gradients[0]};
  }
};

// Parameters, and the angles of the positions, in one array, which is no block's.
class Tables {
 public:
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(values_)); }
  at::Tensor weight(std::vector<std::int64_t> extents) {
    return angles(std::move(extents)).set_requires_grad(true);
  }
  at::Tensor angles(std::vector<std::int64_t> extents) {
    std::int64_t count = 1;
    for (const std::int64_t extent : extents) count *= extent;
    REQUIRE(used_ + count <= std::ssize(values_));
    std::uint16_t* const first = values_.data() + used_;
    used_ += count;
    return at::from_blob(first, extents, at::TensorOptions(at::kBFloat16));
  }

 private:
  std::vector<std::uint16_t> values_ = std::vector<std::uint16_t>(4 << 20);
  std::int64_t used_ = 0;
};

at::Tensor normalised(Tables& tables, const at::Tensor& x) {
  return FusedRmsNorm::apply(x) * tables.weight({x.size(-1)});
}

at::Tensor product_of(Tables& tables, const at::Tensor& x, std::int64_t width) {
  return at::matmul(x, tables.weight({width, x.size(-1)}).t());
}

// `of_heads` is (tokens, heads, head_dim); the result (windows, heads, sequence, head_dim).
at::Tensor as_windows(const at::Tensor& of_heads) {
  return of_heads.view({kBatch, of_heads.size(0) / kBatch, of_heads.size(1), of_heads.size(2)})
      .transpose(1, 2);
}

at::Tensor turned(Tables& tables, const ModelShape& shape, const at::Tensor& rows) {
  at::Tensor x = rows.view({rows.size(0), shape.heads, shape.head_width()});
  if (shape.qk_norm) x = normalised(tables, x);
  const std::int64_t half = shape.head_width() / 2;
  const at::Tensor across = at::cat({-x.narrow(2, half, half), x.narrow(2, 0, half)}, 2);
  const at::Tensor cosine = tables.angles({rows.size(0), 1, shape.head_width()});
  const at::Tensor sine = tables.angles({rows.size(0), 1, shape.head_width()});
  return as_windows(x * cosine + across * sine);
}

at::Tensor attended(Tables& tables, const ModelShape& shape, const at::Tensor& x) {
  const at::Tensor query = turned(tables, shape, product_of(tables, x, shape.attention_width()));
  const at::Tensor key = turned(tables, shape, product_of(tables, x, shape.kv_width()));
  const at::Tensor value = as_windows(product_of(tables, x, shape.kv_width())
                                          .view({x.size(0), shape.kv_heads, shape.head_width()}));
  const at::Tensor mixed =
      at::scaled_dot_product_attention(query, key, value, std::nullopt, 0.0, true);
  return mixed.transpose(1, 2).reshape({x.size(0), shape.attention_width()});
}

at::Tensor llama_block_forward(Tables& tables, const ModelShape& shape, const at::Tensor& x) {
  const at::Tensor result = attended(tables, shape, normalised(tables, x));
  const at::Tensor middle = x + product_of(tables, result, shape.hidden);
  const at::Tensor inner = normalised(tables, middle);
  const at::Tensor gate = at::silu(product_of(tables, inner, shape.ffn));
  return middle + product_of(tables, gate * product_of(tables, inner, shape.ffn), shape.hidden);
}

// ---- gpt2, bert, bloom and vit

at::Tensor layer_normed(Tables& tables, const at::Tensor& x) {
  const std::int64_t width = x.size(1);
  const at::Tensor normal = at::layer_norm(x, {width}, {}, {}, 1e-5);
  return at::addcmul(tables.weight({width}), normal, tables.weight({width}));
}

at::Tensor linear(Tables& tables, const at::Tensor& x, std::int64_t out) {
  return at::addmm(tables.weight({out}), x, tables.weight({out, x.size(1)}).t());
}

at::Tensor mlp(Tables& tables, const at::Tensor& x) {
  const std::int64_t hidden = x.size(1);
  return linear(tables, at::gelu(linear(tables, x, 4 * hidden)), hidden);
}

// Queries, keys and values by one product or by three, which keep the same. ALiBi's slopes times
// distances are one array for all layers; it says, too, that tokens look back only.
at::Tensor plain_attention(Tables& tables, const ModelShape& shape, const at::Tensor& x) {
  const bool is_fused = shape.family == Family::gpt2 || shape.family == Family::bloom;
  std::vector<at::Tensor> parts;
  const at::Tensor fused = is_fused ? linear(tables, x, 3 * shape.hidden) : at::Tensor();
  for (std::int64_t i = 0; i < 3; ++i) {
    const at::Tensor rows = is_fused ? fused.narrow(1, i * shape.hidden, shape.hidden)
                                     : linear(tables, x, shape.hidden);
    parts.push_back(as_windows(rows.view({x.size(0), shape.heads, shape.head_width()})));
  }
  std::optional<at::Tensor> distances;
  if (shape.family == Family::bloom)
    distances = tables.angles({1, shape.heads, shape.sequence, shape.sequence});
  const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], distances,
                                                            0.0, shape.family == Family::gpt2);
  return linear(tables, mixed.transpose(1, 2).reshape({x.size(0), shape.hidden}), shape.hidden);
}

at::Tensor plain_block_forward(Tables& tables, const ModelShape& shape, const at::Tensor& x) {
  if (shape.family == Family::bert) {
    const at::Tensor middle = layer_normed(tables, x + plain_attention(tables, shape, x));
    return layer_normed(tables, middle + mlp(tables, middle));
  }
  const at::Tensor middle = x + plain_attention(tables, shape, layer_normed(tables, x));
  return middle + mlp(tables, layer_normed(tables, middle));
}

// ---- what they keep

using BlockForward =
    std::function<at::Tensor(Tables& tables, const ModelShape& shape, const at::Tensor& x)>;

// The blocks' bytes, smallest first.
std::vector<std::int64_t> kept_in_libtorch(const ModelShape& shape, const BlockForward& forward) {
  use_tensor_memory();
  watch_saved_tensors();
  Tables tables;
  const BlockMemory memory{.parameters = tables.bytes()};
  SavedBlocks saved(memory);
  // Factories of at:: do not hear TensorOptions' requires_grad.
  const at::Tensor x =
      at::ones({kBatch * shape.sequence, shape.hidden}, at::TensorOptions(at::kBFloat16))
          .set_requires_grad(true);
  at::Tensor out;
  {
    const SavedTensorWatch watch([&](const at::Tensor& tensor) { saved.note(tensor); });
    out = forward(tables, shape, x);
  }
  REQUIRE(out.size(1) == shape.hidden);
  REQUIRE_FALSE(saved.has(out));
  const auto kept = saved.kept();
  REQUIRE(kept.ok());
  std::vector<std::int64_t> found;
  for (const KeptBlock& block : *kept) found.push_back(block.size_bytes);
  std::ranges::sort(found);
  return found;
}

std::vector<std::int64_t> kept_in_the_table(const ModelShape& shape) {
  std::vector<std::int64_t> counted = kept_block_bytes(shape, LayerId{1}, kBatch, shape.sequence,
                                                       Activations::offload, ParameterKind::bf16);
  std::ranges::sort(counted);
  return counted;
}

std::int64_t sum(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
}

TEST_CASE("a llama's block keeps in libtorch what is counted, block by block") {
  ModelShape shape{"llama", 1, 256, 4, 256, 97, Family::llama};
  shape.kv_heads = 4;
  shape.ffn = 640;
  for (const std::int64_t head_dim : {0, 96}) {
    for (const bool qk_norm : {false, true}) {
      shape.head_dim = head_dim;
      shape.qk_norm = qk_norm;
      INFO("head_dim " << head_dim << ", qk_norm " << qk_norm);
      CHECK(kept_in_libtorch(shape, llama_block_forward) == kept_in_the_table(shape));
    }
  }
}

TEST_CASE("a block of gpt2, bert, bloom and vit keeps in libtorch the bytes that are counted") {
  for (const Family family : {Family::gpt2, Family::bert, Family::bloom, Family::vit}) {
    const ModelShape shape{"plain", 1, 256, 4, 192, 97, family};
    INFO(family_name(family));
    CHECK(sum(kept_in_libtorch(shape, plain_block_forward)) == sum(kept_in_the_table(shape)));
  }
}

}  // namespace
}  // namespace sluice::model
