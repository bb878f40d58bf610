// The same work on the CPU and on the device gives the same bits.

#include <ATen/Parallel.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

#include "tests/soft/accelerator/soft_fixture.h"

namespace sluice::soft_accelerator {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr std::int64_t kBatch = 2, kSequence = 40, kHeads = 4, kHidden = 64;

at::Tensor random(at::IntArrayRef size, at::ScalarType dtype) {
  return at::randn(size).mul_(0.1).to(dtype);
}

Tensors inputs(at::ScalarType dtype) {
  return {random({kBatch * kSequence, kHidden}, dtype),
          random({kHidden, 3 * kHidden}, dtype),
          random({3 * kHidden}, dtype),
          random({kHidden, 4 * kHidden}, dtype),
          random({4 * kHidden}, dtype),
          random({4 * kHidden, kHidden}, dtype),
          random({kHidden}, dtype),
          random({kHidden}, dtype)};
}

at::Tensor norm(const at::Tensor& x, const Tensors& w) {
  return at::addcmul(w[7], at::layer_norm(x, {kHidden}, {}, {}, 1e-5), w[6]);
}

// A block of a transformer, its norm in both ways that libtorch has.
at::Tensor block(const Tensors& w) {
  const at::Tensor qkv = at::addmm(w[2], norm(w[0], w), w[1]);
  Tensors parts = qkv.split(kHidden, 1);
  for (at::Tensor& part : parts)
    part = part.view({kBatch, kSequence, kHeads, kHidden / kHeads}).transpose(1, 2);
  const at::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2],
                                                            std::nullopt, 0.0, /*is_causal=*/true);
  const at::Tensor x = w[0] + mixed.transpose(1, 2).reshape({kBatch * kSequence, kHidden});
  const at::Tensor wide =
      at::gelu(at::addmm(w[4], at::layer_norm(x, {kHidden}, w[6], w[7], 1e-5), w[3]), "tanh");
  return x + at::mm(at::silu(wide), w[5]);
}

Tensors output_and_gradients(Tensors w, c10::Device device) {
  for (at::Tensor& tensor : w) tensor = tensor.to(device).detach().set_requires_grad(true);
  const at::Tensor out = block(w);
  const at::Tensor loss = (out * out).sum(at::kFloat);
  Tensors found = torch::autograd::grad({loss}, w);
  found.push_back(out.detach());
  found.push_back(loss.detach());
  for (at::Tensor& tensor : found) tensor = tensor.cpu();
  return found;
}

void check_equal(const Tensors& a, const Tensors& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("tensor " << i);
    CHECK(at::equal(a[i], b[i]));
  }
}

TEST_CASE("a block's output and gradients are the CPU's, bit for bit") {
  const Soft soft;
  const int threads_before = at::get_num_threads();
  for (const int threads : {1, 2}) {
    at::set_num_threads(threads);
    sluice_soft_accelerator_set_threads(threads);
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      INFO(threads << " threads, " << dtype);
      const Tensors w = inputs(dtype);
      check_equal(output_and_gradients(w, at::kCPU), output_and_gradients(w, kSoft));
    }
  }
  at::set_num_threads(threads_before);
  soft.synchronize();
  CHECK(soft.counters().used_bytes == 0);
  CHECK(soft.counters().outputs > 50);
  CHECK(soft.counters().moved_outputs == 0);
  CHECK(soft.counters().blocking_jobs == 0);
}

TEST_CASE("delays change no bit") {
  const Soft soft;
  const Tensors w = inputs(at::kFloat);
  const Tensors expected = output_and_gradients(w, at::kCPU);
  for (const char* settings : {"seed=1;delay_us=300", "seed=2;delay_us=300"}) {
    soft.set(settings);
    check_equal(expected, output_and_gradients(w, kSoft));
  }
}

// What a model does beside its blocks: embedding, loss, gradients of the two, in place and into
// outputs that are there.
Tensors head_and_embedding(at::ScalarType dtype, c10::Device device,
                           const at::Tensor& table_on_host, const at::Tensor& tokens_on_host) {
  const at::Tensor table = table_on_host.to(device), tokens = tokens_on_host.to(device);
  const at::Tensor x = table.index_select(0, tokens);
  x.view({4, 10, kHidden}).add_(table.narrow(0, 0, 10));
  at::Tensor logits = at::empty({40, table.size(0)}, x.options());
  at::mm_out(logits, x, table.t());
  const at::Tensor wide = logits.narrow(0, 0, 40).to(at::kFloat);
  const at::Tensor sums = at::empty({40}, wide.options());
  sums.narrow(0, 0, 40).copy_(at::logsumexp(wide, 1));
  const at::Tensor target = tokens.unsqueeze(1);
  const at::Tensor loss = (sums - wide.gather(1, target).squeeze(1)).sum(at::kDouble);
  wide.sub_(sums.unsqueeze(1)).exp_();
  wide.scatter_(1, target, wide.gather(1, target).sub_(1.0));
  wide.mul_(0.25);
  logits.copy_(wide);
  at::Tensor gradient = at::zeros({table.size(0), kHidden}, x.options().dtype(at::kFloat));
  gradient.narrow(0, 0, 20).add_(at::mm(logits.narrow(1, 0, 20).t(), x));
  gradient.index_add_(0, tokens, x.to(at::kFloat));
  at::Tensor copied = at::zeros_like(table);
  copied.index_copy_(0, at::arange(40, tokens.options()), gradient.narrow(0, 0, 40).to(dtype));
  const at::Tensor joined = at::cat({x.slice(1, 0, 3), x.slice(1, 8, 20)}, 1);
  const double read = loss.item<double>();
  return {loss.cpu(),        logits.cpu(),
          gradient.cpu(),    copied.cpu(),
          joined.cpu(),      x.view({4, 10, kHidden}).sum({0}, false, at::kFloat).cpu(),
          at::full({}, read)};
}

TEST_CASE("an embedding, a loss and their gradients are the CPU's, bit for bit") {
  const Soft soft;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor table = random({50, kHidden}, dtype), tokens = at::randint(50, {40});
    check_equal(head_and_embedding(dtype, at::kCPU, table, tokens.to(at::kLong)),
                head_and_embedding(dtype, kSoft, table, tokens.to(at::kLong)));
  }
  CHECK(std::string(sluice_soft_accelerator_blocking_jobs()) == "");
}

TEST_CASE("operators whose outputs' shapes depend on values work, and wait") {
  const Soft soft;
  const at::Tensor x = at::arange(10, at::TensorOptions(kSoft).dtype(at::kFloat));
  CHECK(at::equal(x, x.clone()));
  CHECK(at::equal((x > 6).nonzero().cpu(), at::arange(7, 10).unsqueeze(1)));
  CHECK(soft.counters().blocking_jobs == 2);
  CHECK(std::string(sluice_soft_accelerator_blocking_jobs()) == "aten::equal 1, aten::nonzero 1");
}

TEST_CASE("a tensor grows and keeps what it had") {
  const Soft soft;
  at::Tensor x = at::arange(10, at::TensorOptions(kSoft).dtype(at::kFloat));
  x.resize_({1000});
  CHECK(at::equal(x.cpu().narrow(0, 0, 10), at::arange(10, at::kFloat)));
}

}  // namespace
}  // namespace sluice::soft_accelerator
