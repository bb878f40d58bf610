// The kernels of split state against the definition: every rule, format and gradient, to the bit,
// checksums among it.

#include <catch2/catch.hpp>
#include <set>

#include "storage/state/checksum.h"
#include "tests/hls/kernels/split_subgroup.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

constexpr std::int64_t kBlock = kBlockElements;

void run(SplitSubgroup& subgroup, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::of_the_kernel:
      return run_kernel(subgroup);
    case Arithmetic::integer:
      return run_region<IntegerArithmetic>(subgroup, subgroup.plain.scalars);
    case Arithmetic::threads: {
      const hls_sim::ThreadsScope threads;
      return run_kernel(subgroup);
    }
  }
}

// The definition, of the dense gradient.
SplitSubgroup referenced(SplitSubgroup subgroup) {
  std::vector<float> gradient = subgroup.plain.dense;
  const optimizer::GradientKind kind = subgroup.spec.plain.gradient_kind;
  if (kind != optimizer::GradientKind::fp32) {
    const Float16Kind half =
        kind == optimizer::GradientKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
    for (float& value : gradient) {
      value = float_from_float16(half, float16_from_float(half, value));
    }
  }
  optimizer::update_reference(subgroup.plain.scalars,
                              {.state = subgroup.span(),
                               .gradient = gradient.data(),
                               .gradient_kind = optimizer::GradientKind::fp32,
                               .rounding = subgroup.rounding,
                               .first_flat_index = subgroup.spec.first_flat_index});
  return subgroup;
}

void check_same(const SplitSpec& spec, Arithmetic arithmetic) {
  SplitSubgroup subgroup(spec);
  const SplitSubgroup before = subgroup;
  const SplitSubgroup expected = referenced(subgroup);
  run(subgroup, arithmetic);
  CAPTURE(spec.plain.element_count, static_cast<int>(spec.plain.rule), spec.plain.is_sparse,
          static_cast<int>(spec.plain.gradient_kind), kernel_format(spec.format),
          static_cast<int>(spec.codes), spec.plain.seed);
  REQUIRE(subgroup.plain.result[0] == Word(0u));
  for (std::int32_t a = 0; a < subgroup.arrays.count; ++a) {
    CAPTURE(a);
    CHECK(std::ranges::equal(subgroup.bytes(a), expected.bytes(a)));
    CHECK(lane64(subgroup.plain.result[1], a) == state::checksum(before.bytes(a)));
    CHECK(lane64(subgroup.plain.result[2], a) == state::checksum(expected.bytes(a)));
  }
}

const sluice::StateFormat kFormats[] = {
    {StateFormatKind::exact, 16}, {StateFormatKind::compact, 16}, {StateFormatKind::compact, 8}};

// Each with each rule and format; `all_gradients` says whether fp32 alone will do.
std::vector<SplitSpec> policies(bool all_gradients) {
  std::vector<SplitSpec> specs;
  for (const auto rule : kRules) {
    for (const auto& format : kFormats) {
      for (const bool is_sparse : {false, true}) {
        for (const auto kind : kKinds) {
          if (!all_gradients && (is_sparse || kind != optimizer::GradientKind::fp32)) continue;
          specs.push_back({.plain = {.rule = rule, .is_sparse = is_sparse, .gradient_kind = kind},
                           .format = format});
        }
      }
    }
  }
  return specs;
}

// Deals the seeds, and with them what the arrays hold: codes of any bits come with a gradient of
// any bits.
class Dealer {
 public:
  explicit Dealer(std::uint64_t seed) : seed_(seed) {}
  SplitSpec dealt(SplitSpec spec, std::int64_t element_count) {
    spec.plain.element_count = element_count;
    spec.plain.seed = seed_;
    spec.codes = static_cast<Codes>(seed_ % 3);
    spec.plain.values = spec.codes == Codes::ordinary ? Values::ordinary : Values::any_bits;
    // Every other one's indices cross from one half of 64 bits to the other.
    spec.first_flat_index =
        seed_ % 2 == 0 ? std::int64_t{1} << 20 : (std::int64_t{5} << 32) - kGroupElements;
    seed_ += 1;
    return spec;
  }

 private:
  std::uint64_t seed_;
};

}  // namespace

TEST_CASE("each rule and format gives the definition's bits and checksums at every small size") {
  Dealer dealer(1);
  for (const SplitSpec& spec : policies(false)) {
    // All short inputs of XXH3, of arrays of a byte and of four an element.
    for (std::int64_t n = 1; n <= 260; ++n) {
      check_same(dealer.dealt(spec, n), Arithmetic::of_the_kernel);
    }
  }
}

TEST_CASE("groups, blocks and tiles end where the definition's do, with every gradient") {
  Dealer dealer(10'000);
  for (const SplitSpec& spec : policies(true)) {
    for (const std::int64_t n :
         {std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{65}, std::int64_t{1000},
          kBlock - 1, kBlock, kBlock + 1, kBlock + 64, 2 * kBlock + 8 * 64 + 1, kTile - 1, kTile,
          kTile + 1, 2 * kTile + 17}) {
      check_same(dealer.dealt(spec, n), Arithmetic::of_the_kernel);
    }
  }
}

TEST_CASE("integers that are synthesised give the same codes as the processor's arithmetic") {
  Dealer dealer(20'000);
  for (const SplitSpec& spec : policies(true)) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{1000}, kBlock + 7}) {
      for (int round = 0; round < 2; ++round) {
        check_same(dealer.dealt(spec, n), Arithmetic::integer);
      }
    }
  }
}

TEST_CASE("split processes as threads over FIFOs of the source's depth come to an end") {
  Dealer dealer(30'000);
  for (const SplitSpec& spec : policies(true)) {
    for (const std::int64_t n : {std::int64_t{1}, std::int64_t{300}, 3 * kBlock + 100}) {
      check_same(dealer.dealt(spec, n), Arithmetic::threads);
    }
  }
  // As many blocks as would fill a FIFO if the hash fell behind by a word in each: with the scales
  // of moments, and with those of ties.
  check_same(dealer.dealt({}, 70 * kBlock), Arithmetic::threads);
  check_same(dealer.dealt({.plain = {.rule = optimizer::RuleKind::sgd},
                           .format = {StateFormatKind::exact, 16}},
                          70 * kBlock),
             Arithmetic::threads);
}

TEST_CASE("the exact format has the state of fp32, and its copy") {
  for (const auto rule : kRules) {
    SplitSpec spec = {.plain = {.rule = rule, .element_count = kTile + 77, .seed = 5},
                      .format = {StateFormatKind::exact, 16}};
    SplitSubgroup split(spec);
    Subgroup plain(spec.plain);
    for (int step = 0; step < 3; ++step) {
      run_kernel(split);
      run_kernel(plain);
    }
    std::vector<float> decoded(static_cast<std::size_t>(spec.plain.element_count));
    for (int v = 0; v < plain.state_count; ++v) {
      decode(split.span(), v, 0, decoded);
      CHECK(std::memcmp(decoded.data(), as<float>(plain.state[static_cast<std::size_t>(v)]),
                        decoded.size() * sizeof(float)) == 0);
    }
    CHECK(std::memcmp(split.stored[0].data(), plain.parameters.data(), 2 * decoded.size()) == 0);
  }
}

// What no policy of a run comes to in seconds: scripts/soak_hls.sh runs it.
TEST_CASE("a hundred million elements of every rule and format", "[.soak]") {
  Dealer dealer(100'000);
  for (int round = 0; round < 96; ++round) {
    for (const SplitSpec& spec : policies(false)) {
      check_same(dealer.dealt(spec, (1 << 20) + 13), Arithmetic::of_the_kernel);
    }
  }
}
