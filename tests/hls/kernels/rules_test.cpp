#include "hls/kernels/rules.h"

#include <catch2/catch.hpp>

#include "core/optimizer/update_rule.h"
#include "tests/hls/kernels/operands.h"

namespace sluice::hls_kernels {
namespace {

using optimizer::AdaGradScalars;
using optimizer::AdamWScalars;
using optimizer::SgdScalars;

template <class Arithmetic>
AdamW<Arithmetic> rule_of(const AdamWScalars& s) {
  return {s.grad_scale, s.beta1,           s.one_minus_beta1,    s.beta2, s.one_minus_beta2,
          s.decay,      s.minus_step_size, s.inverse_sqrt_bias2, s.eps};
}
template <class Arithmetic>
Sgd<Arithmetic> rule_of(const SgdScalars& s) {
  return {s.grad_scale, s.weight_decay, s.momentum, s.minus_lr};
}
template <class Arithmetic>
AdaGrad<Arithmetic> rule_of(const AdaGradScalars& s) {
  return {s.grad_scale, s.weight_decay, s.minus_lr, s.eps};
}

// An element's gradient and state.
struct Element {
  std::uint32_t gradient;
  std::uint32_t state[3];
};

std::vector<Element> special_elements() {
  std::vector<Element> elements;
  for (const std::uint32_t gradient : special_bits()) {
    for (const std::uint32_t second : special_bits()) {
      for (const std::uint32_t third : {0u, 0x00000001u, 0x3f800000u, 0x7f7fffffu, 0x7f800000u})
        elements.push_back({gradient, {0x3e800001u, second, third}});
      elements.push_back({gradient, {second, 0x3c000003u, 0x3b000005u}});
    }
  }
  return elements;
}

// Numbers as training has them, and any bits.
std::vector<Element> random_elements(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 1e-2f);
  const auto bits = [&] { return std::bit_cast<std::uint32_t>(normal(random)); };
  OperandSource source(seed);
  std::vector<Element> elements;
  for (int i = 0; i < count; ++i) {
    elements.push_back({bits(), {bits(), bits(), bits() & ~kSignBit}});
    const Operands any = source.next();
    elements.push_back({any.a, {source.any_bits(), any.b, any.c & ~kSignBit}});
  }
  return elements;
}

template <class Rule>
std::int64_t differences(const Rule& rule, const std::vector<Element>& before,
                         const std::vector<Element>& after) {
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    std::uint32_t state[Rule::kStateCount];
    for (int v = 0; v < Rule::kStateCount; ++v) state[v] = before[i].state[v];
    rule.update(before[i].gradient, state);
    for (int v = 0; v < Rule::kStateCount; ++v) wrong += state[v] != after[i].state[v];
  }
  return wrong;
}

std::vector<Element> updated_by_reference(const optimizer::UpdateScalars& scalars,
                                          std::vector<Element> elements) {
  for (Element& element : elements) {
    optimizer::UpdateArrays arrays = {.element_count = 1, .gradient = &element.gradient};
    float state[3];
    for (std::size_t v = 0; v < 3; ++v) {
      state[v] = std::bit_cast<float>(element.state[v]);
      arrays.state[v] = &state[v];
    }
    optimizer::update_reference(scalars, arrays);
    for (std::size_t v = 0; v < 3; ++v) element.state[v] = std::bit_cast<std::uint32_t>(state[v]);
  }
  return elements;
}

void compare(const optimizer::UpdateOptions& options, const std::vector<Element>& elements) {
  for (const auto& [step, grad_scale] : {std::pair{1, 1.0}, {7, 1.0 / 65536}, {1'000, 0.37}}) {
    const optimizer::UpdateScalars scalars = optimizer::update_scalars(options, step, grad_scale);
    const std::vector<Element> updated = updated_by_reference(scalars, elements);
    std::visit(
        [&](const auto& of_rule) {
          CAPTURE(scalars.index(), step);
          CHECK(differences(rule_of<IntegerArithmetic>(of_rule), elements, updated) == 0);
          CHECK(differences(rule_of<NativeArithmetic>(of_rule), elements, updated) == 0);
        },
        scalars);
  }
}

void compare_every_rule(const std::vector<Element>& elements) {
  for (const optimizer::RuleKind kind :
       {optimizer::RuleKind::adamw, optimizer::RuleKind::sgd, optimizer::RuleKind::adagrad}) {
    optimizer::UpdateOptions options = optimizer::default_options(kind);
    compare(options, elements);
    options.weight_decay = 0;
    options.eps = 1e-44;  // subnormal
    compare(options, elements);
  }
}

TEST_CASE("rules equal the reference bit by bit on special values") {
  compare_every_rule(special_elements());
}

TEST_CASE("rules equal the reference bit by bit on random values") {
  compare_every_rule(random_elements(50'000, 4));
}

TEST_CASE("rules equal the reference on a hundred million random elements", "[.soak]") {
  for (std::uint64_t seed = 100; seed < 150; ++seed)
    compare_every_rule(random_elements(1'000'000, seed));
}

}  // namespace
}  // namespace sluice::hls_kernels
