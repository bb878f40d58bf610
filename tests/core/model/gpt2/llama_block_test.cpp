// A block of a llama in libtorch, written down here, against what core/model/block_tensors.h says
// that it keeps: the same sizes, block by block. libtorch's own RMSNorm is several operations on a
// processor, so that of this block is one, as on a GPU.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/model/kept_bytes.h"
#include "core/model/torch/saved_blocks.h"
#include "core/model/torch/saved_tensors.h"
#include "core/model/torch/tensor_memory.h"

namespace sluice::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t kLlamaBatch = 2;

struct FusedRmsNorm : torch::autograd::Function<FusedRmsNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor scale = at::rsqrt((wide * wide).mean({-1}, true) + 1e-6).to(x.scalar_type());
    context->save_for_backward({x, scale});
    return x * scale;
  }
  static variable_list backward(AutogradContext* /*context*/, const variable_list& gradients) {
    return {gradients[0]};
  }
};

// Parameters, and the angles of the positions, in one array, which is no block's.
class LlamaTables {
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

at::Tensor normalised(LlamaTables& tables, const at::Tensor& x) {
  return FusedRmsNorm::apply(x) * tables.weight({x.size(-1)});
}

at::Tensor product_of(LlamaTables& tables, const at::Tensor& x, std::int64_t width) {
  return at::matmul(x, tables.weight({width, x.size(-1)}).t());
}

// `of_heads` is (tokens, heads, head_dim); the result (windows, heads, sequence, head_dim).
at::Tensor as_windows(const at::Tensor& of_heads) {
  return of_heads
      .view({kLlamaBatch, of_heads.size(0) / kLlamaBatch, of_heads.size(1), of_heads.size(2)})
      .transpose(1, 2);
}

at::Tensor turned(LlamaTables& tables, const ModelShape& shape, const at::Tensor& rows) {
  at::Tensor x = rows.view({rows.size(0), shape.heads, shape.head_width()});
  if (shape.qk_norm) x = normalised(tables, x);
  const std::int64_t half = shape.head_width() / 2;
  const at::Tensor across = at::cat({-x.narrow(2, half, half), x.narrow(2, 0, half)}, 2);
  const at::Tensor cosine = tables.angles({rows.size(0), 1, shape.head_width()});
  const at::Tensor sine = tables.angles({rows.size(0), 1, shape.head_width()});
  return as_windows(x * cosine + across * sine);
}

at::Tensor attended(LlamaTables& tables, const ModelShape& shape, const at::Tensor& x) {
  const at::Tensor query = turned(tables, shape, product_of(tables, x, shape.attention_width()));
  const at::Tensor key = turned(tables, shape, product_of(tables, x, shape.kv_width()));
  const at::Tensor value = as_windows(product_of(tables, x, shape.kv_width())
                                          .view({x.size(0), shape.kv_heads, shape.head_width()}));
  const at::Tensor mixed =
      at::scaled_dot_product_attention(query, key, value, std::nullopt, 0.0, true);
  return mixed.transpose(1, 2).reshape({x.size(0), shape.attention_width()});
}

at::Tensor llama_block_forward(LlamaTables& tables, const ModelShape& shape, const at::Tensor& x) {
  const at::Tensor result = attended(tables, shape, normalised(tables, x));
  const at::Tensor middle = x + product_of(tables, result, shape.hidden);
  const at::Tensor inner = normalised(tables, middle);
  const at::Tensor gate = at::silu(product_of(tables, inner, shape.ffn));
  return middle + product_of(tables, gate * product_of(tables, inner, shape.ffn), shape.hidden);
}

TEST_CASE("a llama's block keeps in libtorch what is counted, block by block") {
  use_tensor_memory();
  watch_saved_tensors();
  ModelShape shape{"llama", 1, 256, 4, 256, 97, Family::llama};
  shape.kv_heads = 4;
  shape.ffn = 640;
  for (const std::int64_t head_dim : {0, 96}) {
    for (const bool qk_norm : {false, true}) {
      shape.head_dim = head_dim;
      shape.qk_norm = qk_norm;
      INFO("head_dim " << head_dim << ", qk_norm " << qk_norm);
      LlamaTables tables;
      const BlockMemory memory{.parameters = tables.bytes()};
      SavedBlocks saved(memory);
      // Factories of at:: do not hear TensorOptions' requires_grad.
      const at::Tensor x =
          at::ones({kLlamaBatch * shape.sequence, shape.hidden}, at::TensorOptions(at::kBFloat16))
              .set_requires_grad(true);
      at::Tensor out;
      {
        const SavedTensorWatch watch([&](const at::Tensor& tensor) { saved.note(tensor); });
        out = llama_block_forward(tables, shape, x);
      }
      REQUIRE(out.size(1) == shape.hidden);
      const auto kept = saved.kept();
      REQUIRE(kept.ok());
      std::vector<std::int64_t> found;
      for (const KeptBlock& block : *kept) found.push_back(block.size_bytes);
      std::vector<std::int64_t> counted =
          kept_block_bytes(shape, LayerId{1}, kLlamaBatch, shape.sequence, Activations::offload);
      std::ranges::sort(found);
      std::ranges::sort(counted);
      CHECK(found == counted);
    }
  }
}

}  // namespace
}  // namespace sluice::model
