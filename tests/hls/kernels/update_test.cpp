// The update kernels against the scalar reference, the SIMD kernel and the emulated device: every
// rule, gradient and output, to the bit, checksums among it.

#include <catch2/catch.hpp>
#include <set>

#include "core/csd/update_kernel.h"
#include "storage/state/checksum.h"
#include "tests/hls/kernels/subgroup.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

void run(Subgroup& subgroup, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::of_the_kernel:
      return run_kernel(subgroup);
    case Arithmetic::integer:
      return run_region<IntegerArithmetic>(subgroup);
    case Arithmetic::threads: {
      const hls_sim::ThreadsScope threads;
      return run_kernel(subgroup);
    }
  }
}

std::uint64_t checksum_of(const std::vector<Word>& words, std::int64_t element_count) {
  return state::checksum({as<std::byte>(words), static_cast<std::size_t>(4 * element_count)});
}

// One element at a time, of the dense gradient.
Subgroup referenced(Subgroup subgroup) {
  optimizer::UpdateArrays arrays{.element_count = subgroup.spec.element_count,
                                 .gradient = subgroup.dense.data()};
  std::vector<float> rounded = subgroup.dense;
  if (subgroup.spec.gradient_kind != optimizer::GradientKind::fp32) {
    const Float16Kind kind = subgroup.spec.gradient_kind == optimizer::GradientKind::bf16
                                 ? Float16Kind::bf16
                                 : Float16Kind::fp16;
    for (float& value : rounded) value = float_from_float16(kind, float16_from_float(kind, value));
    arrays.gradient = rounded.data();
  }
  for (int v = 0; v < subgroup.state_count; ++v)
    arrays.state[static_cast<std::size_t>(v)] =
        as<float>(subgroup.state[static_cast<std::size_t>(v)]);
  const bool is_narrow = subgroup.spec.parameter_format >= kParametersBf16;
  if (is_narrow) arrays.parameters = as<std::uint16_t>(subgroup.parameters);
  arrays.parameter_kind =
      subgroup.spec.parameter_format == kParametersFp16 ? Float16Kind::fp16 : Float16Kind::bf16;
  optimizer::update_reference(subgroup.scalars, arrays);
  if (subgroup.spec.parameter_format == kParametersFp32)
    std::memcpy(as<std::byte>(subgroup.parameters), as<std::byte>(subgroup.state[0]),
                static_cast<std::size_t>(4 * subgroup.spec.element_count));
  return subgroup;
}

void check_same(const SubgroupSpec& spec, Arithmetic arithmetic) {
  Subgroup subgroup(spec);
  const Subgroup before = subgroup;
  const Subgroup expected = referenced(subgroup);
  run(subgroup, arithmetic);
  CAPTURE(spec.element_count, static_cast<int>(spec.rule), spec.is_sparse,
          static_cast<int>(spec.gradient_kind), spec.parameter_format, spec.seed);
  REQUIRE(subgroup.result[0] == Word(0u));
  CHECK(subgroup.state == expected.state);
  CHECK(subgroup.parameters == expected.parameters);
  for (int v = 0; v < subgroup.state_count; ++v) {
    const auto& array = static_cast<std::size_t>(v);
    CHECK(lane64(subgroup.result[1], v) == checksum_of(before.state[array], spec.element_count));
    CHECK(lane64(subgroup.result[2], v) == checksum_of(expected.state[array], spec.element_count));
  }
}

std::vector<SubgroupSpec> all_policies() {
  std::vector<SubgroupSpec> specs;
  for (const auto rule : kRules)
    for (const bool is_sparse : {false, true})
      for (const auto kind : kKinds)
        for (std::uint32_t format = kParametersNone; format <= kParametersFp16; ++format)
          specs.push_back({.rule = rule,
                           .is_sparse = is_sparse,
                           .gradient_kind = kind,
                           .parameter_format = format});
  return specs;
}

}  // namespace

TEST_CASE("each policy gives the reference's bits and checksums at every size around its borders") {
  std::uint64_t seed = 1;
  for (SubgroupSpec spec : all_policies()) {
    // All short inputs of XXH3, words and their neighbours, tiles and theirs.
    std::set<std::int64_t> sizes = {kTile - 1, kTile,         kTile + 1,     2 * kTile - 1,
                                    2 * kTile, 2 * kTile + 1, 3 * kTile + 17};
    for (std::int64_t n = 1; n <= 80; ++n) sizes.insert(n);
    for (std::int64_t n : {255, 256, 257, 271, 272, 273, 511, 512, 513, 1000}) sizes.insert(n);
    for (const std::int64_t n : sizes) {
      spec.element_count = n;
      spec.values = n % 2 == 0 ? Values::ordinary : Values::any_bits;
      spec.seed = seed++;
      check_same(spec, Arithmetic::of_the_kernel);
    }
  }
}

TEST_CASE("the integers that are synthesised give the same bits as the processor's arithmetic") {
  std::uint64_t seed = 1000;
  for (SubgroupSpec spec : all_policies()) {
    for (const std::int64_t n :
         {std::int64_t{1}, std::int64_t{33}, std::int64_t{1000}, kTile + 7}) {
      spec.element_count = n;
      for (const Values values : {Values::ordinary, Values::any_bits}) {
        spec.values = values;
        spec.seed = seed++;
        check_same(spec, Arithmetic::integer);
      }
    }
  }
}

TEST_CASE(
    "processes as threads over FIFOs of the depth that the source gives them come to an end") {
  std::uint64_t seed = 2000;
  for (SubgroupSpec spec : all_policies()) {
    if (spec.parameter_format != kParametersBf16) continue;
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{300}, kTile + 100}) {
      spec.element_count = n;
      spec.seed = seed++;
      check_same(spec, Arithmetic::threads);
    }
  }
}

TEST_CASE("densities from nothing to everything give the dense gradient's bits") {
  for (const double density : {0.0, 0.001, 0.5, 1.0}) {
    for (const auto kind : kKinds) {
      check_same({.element_count = 2 * kTile + 5,
                  .is_sparse = true,
                  .gradient_kind = kind,
                  .density = density,
                  .values = Values::any_bits,
                  .seed = 7},
                 Arithmetic::of_the_kernel);
    }
  }
}

TEST_CASE("kernel and emulated device write the same state, parameters and checksums") {
  for (SubgroupSpec spec : all_policies()) {
    if (spec.parameter_format != kParametersBf16 && spec.parameter_format != kParametersFp16)
      continue;
    spec.element_count = kTile + 4321;
    spec.density = 0.02;
    spec.seed = 11;
    Subgroup kernel(spec);
    Subgroup emulated = kernel;
    run_kernel(kernel);
    csd::UpdateOrder order;
    order.task = {.scalars = emulated.scalars,
                  .element_count = spec.element_count,
                  .is_sparse = spec.is_sparse,
                  .gradient_kind = spec.gradient_kind,
                  .parameter_kind = spec.parameter_format == kParametersFp16 ? Float16Kind::fp16
                                                                             : Float16Kind::bf16,
                  .stored = optimizer::stored_arrays(spec.rule, {})};
    csd::UpdateMemory memory;
    memory.gradient = std::as_bytes(std::span(emulated.gradient));
    memory.parameters = as<std::uint16_t>(emulated.parameters);
    for (std::size_t v = 0; v < emulated.state.size(); ++v) {
      memory.state[v] = as<std::byte>(emulated.state[v]);
      order.check.expected[v] = checksum_of(emulated.state[v], spec.element_count);
    }
    csd::UpdatedChecksums updated{};
    REQUIRE(csd::run_update(order, memory, updated).ok());
    CHECK(kernel.state == emulated.state);
    CHECK(kernel.parameters == emulated.parameters);
    for (std::size_t v = 0; v < emulated.state.size(); ++v)
      CHECK(lane64(kernel.result[2], static_cast<int>(v)) == updated[v]);
  }
}

// What no policy of a run comes to in seconds: scripts/soak_hls.sh runs it.
TEST_CASE("a hundred million elements of every policy", "[.soak]") {
  std::uint64_t seed = 100'000;
  for (SubgroupSpec spec : all_policies()) {
    spec.element_count = (1 << 20) + 13;
    for (int round = 0; round < 96; ++round) {
      spec.values = round % 2 == 0 ? Values::ordinary : Values::any_bits;
      spec.seed = seed++;
      check_same(spec, Arithmetic::of_the_kernel);
    }
  }
}
