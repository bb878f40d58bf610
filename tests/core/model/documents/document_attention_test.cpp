// Attention that sees one document alone, beside that of each document as a window of its own.

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "core/model/torch/attention.h"
#include "core/model/torch/document_mask.h"

namespace sluice::model {
namespace {

constexpr std::int64_t kHeads = 4, kKvHeads = 2, kWidth = 8;

struct Parts {
  explicit Parts(std::int64_t tokens, at::ScalarType dtype) {
    at::manual_seed(7);
    for (const std::int64_t heads : {kHeads, kKvHeads, kKvHeads, kHeads})
      all.push_back(at::randn({tokens, heads * kWidth}).to(dtype));
  }
  // Query, key and value, and the result's gradient.
  std::vector<at::Tensor> all;

  Parts of(std::int64_t first, std::int64_t count) const {
    Parts some = *this;
    for (at::Tensor& part : some.all) part = part.narrow(0, first, count);
    return some;
  }
};

using Attention = at::Tensor (*)(const std::vector<at::Tensor>& in, const at::Tensor& mask,
                                 Sees sees, const at::Tensor& documents, WindowShape window);

at::Tensor grouped(const std::vector<at::Tensor>& in, const at::Tensor& mask, Sees sees,
                   const at::Tensor& documents, WindowShape window) {
  return grouped_attention(in[0], in[1], in[2], window, kHeads, kKvHeads, mask, sees, documents);
}

at::Tensor recomputed(const std::vector<at::Tensor>& in, const at::Tensor& mask, Sees sees,
                      const at::Tensor& documents, WindowShape window) {
  return recomputed_attention(in[0], in[1], in[2], window, kHeads, kKvHeads, mask, sees, documents);
}

// The result and the gradients of the three.
std::vector<at::Tensor> computed(const Parts& parts, Attention attention, const at::Tensor& mask,
                                 Sees sees, const at::Tensor& documents, WindowShape window) {
  std::vector<at::Tensor> inputs;
  for (int i = 0; i < 3; ++i)
    inputs.push_back(parts.all[i].detach().clone().set_requires_grad(true));
  const at::Tensor mixed = attention(inputs, mask, sees, documents, window);
  std::vector<at::Tensor> found = torch::autograd::grad({mixed}, inputs, {parts.all[3]});
  found.insert(found.begin(), mixed.detach());
  return found;
}

double off(const at::Tensor& is, const at::Tensor& wanted) {
  const at::Tensor wide = wanted.to(at::kDouble);
  return ((is.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

// Two windows; the documents of the first are `lengths`, the second is one.
void check_apart(const std::vector<std::int64_t>& lengths, std::int64_t back, Sees sees,
                 at::ScalarType dtype) {
  std::vector<at::Tensor> numbers;
  std::int64_t sequence = 0;
  for (const std::int64_t length : lengths) {
    numbers.push_back(at::full({length}, sequence, at::kLong));
    sequence += length;
  }
  numbers.push_back(at::full({sequence}, sequence, at::kLong));
  const at::Tensor mask = back == 0 ? at::Tensor() : window_mask(sequence, back, at::kFloat);
  const Parts parts(2 * sequence, dtype);
  std::vector<std::int64_t> counts = lengths;
  counts.push_back(sequence);
  for (const Attention attention : {grouped, recomputed}) {
    const auto found = computed(parts, attention, mask, sees, at::cat(numbers), {2, sequence});
    std::int64_t first = 0;
    for (const std::int64_t count : counts) {
      const auto alone = computed(parts.of(first, count), grouped, mask, sees, {}, {1, count});
      for (std::size_t i = 0; i < found.size(); ++i) {
        INFO("document at " << first << ", " << (i == 0 ? "result" : "gradient"));
        CHECK(off(found[i].narrow(0, first, count), alone[i]) <
              (dtype == at::kFloat ? 2e-6 : 0.03));
      }
      first += count;
    }
  }
}

TEST_CASE("a token's attention is that of its document alone") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    check_apart({5, 2, 13}, 0, Sees::back, dtype);
    check_apart({5, 2, 13}, 4, Sees::back, dtype);
    check_apart({5, 2, 13}, 0, Sees::all, dtype);
  }
}

// Wider than the blocks of keys that kernels take at once, of which some are seen by nobody.
TEST_CASE("a document may begin behind a whole block of keys") {
  for (const Sees sees : {Sees::back, Sees::all}) check_apart({700, 530}, 0, sees, at::kFloat);
}

TEST_CASE("a mask is of one window and of the type in which attention computes") {
  const at::Tensor documents = at::arange(0, 6).div(2, "floor").to(at::kLong);
  const at::Tensor mask = document_mask(documents, {}, Sees::back, at::kBFloat16);
  CHECK(mask.scalar_type() == at::kFloat);
  CHECK(mask.sizes() == at::IntArrayRef{6, 6});
  CHECK(mask.eq(0).sum().item<std::int64_t>() == 9);  // three documents of two: 3 each
  CHECK(document_mask(documents, {}, Sees::all, at::kFloat).eq(0).sum().item<std::int64_t>() == 12);
}

}  // namespace
}  // namespace sluice::model
