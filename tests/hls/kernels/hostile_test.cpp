// Sparse gradients that lie: each is refused by its status, and nothing is read or written beyond
// the buffers (guard words around each; the address sanitizer sees the rest).

#include <catch2/catch.hpp>

#include "core/compress/sparse_gradient.h"
#include "tests/hls/kernels/split_subgroup.h"

using namespace sluice;
using namespace sluice::hls_kernels;

namespace {

constexpr std::size_t kCountsWord = 1;
constexpr std::size_t kIndicesWord = 2;

SubgroupSpec three_tiles() {
  return {.element_count = 2 * kTile + 100, .is_sparse = true, .density = 0.01, .seed = 5};
}

std::uint32_t status_of(Subgroup& subgroup) {
  constexpr std::uint32_t kGuard = 0xabadcafe;
  std::vector<std::vector<Word>*> arrays = {&subgroup.gradient, &subgroup.parameters};
  for (auto& state : subgroup.state) arrays.push_back(&state);
  const auto ports_size = subgroup.size();
  for (auto* array : arrays) array->push_back(Word(kGuard));
  const UpdatePorts p = subgroup.ports();
  const auto& a = std::get<optimizer::AdamWScalars>(subgroup.scalars);
  update_adamw(p.gradient, p.counts, p.indices, p.state0_in, p.state0_out, p.state1_in,
               p.state1_out, p.state2_in, p.state2_out, p.parameters, p.result,
               ports_size.element_count, ports_size.gradient_words, ports_size.gradient_format,
               ports_size.parameter_format, a.grad_scale, a.beta1, a.one_minus_beta1, a.beta2,
               a.one_minus_beta2, a.decay, a.minus_step_size, a.inverse_sqrt_bias2, a.eps);
  for (auto* array : arrays) {
    CHECK(array->back() == Word(kGuard));
    array->pop_back();
  }
  return subgroup.result[0][0];
}

template <typename Change>
std::uint32_t status_after(const Change& change, const SubgroupSpec& spec = three_tiles()) {
  Subgroup subgroup(spec);
  change(subgroup);
  return status_of(subgroup);
}

std::uint16_t* indices_of(Subgroup& subgroup) {
  return reinterpret_cast<std::uint16_t*>(subgroup.gradient.data() + kIndicesWord);
}

}  // namespace

TEST_CASE("a sparse gradient as it was encoded is taken") {
  CHECK(status_after([](Subgroup&) {}) == kUpdated);
}

TEST_CASE("a foreign header is refused, field by field") {
  for (const int lane : {0, 1, 2, 9}) {
    CHECK(status_after([lane](Subgroup& s) { s.gradient[0][lane] ^= 1; }) == kForeignGradient);
  }
  CHECK(status_after([](Subgroup& s) { s.gradient[0][3] = 3; }) == kForeignGradient);
  for (const int lane : {4, 5, 7, 8}) {
    CHECK(status_after([lane](Subgroup& s) { s.gradient[0][lane] ^= 1; }) == kWrongCounts);
  }
  for (int lane = 10; lane < 16; ++lane) {
    CHECK(status_after([lane](Subgroup& s) { s.gradient[0][lane] = 0x80000000u; }) == kNotZero);
  }
}

TEST_CASE("a header that announces more than the buffer holds reads none of it") {
  CHECK(status_after([](Subgroup& s) { s.gradient.pop_back(); }) == kCutGradient);
  CHECK(status_after([](Subgroup& s) { s.gradient.resize(1); }) == kCutGradient);
  CHECK(status_after([](Subgroup& s) { s.gradient.clear(); }) == kCutGradient);
  SubgroupSpec dense = three_tiles();
  dense.is_sparse = false;
  CHECK(status_after([](Subgroup& s) { s.gradient.pop_back(); }, dense) == kCutGradient);
}

TEST_CASE("counts that cannot be are refused, and the run comes to an end") {
  CHECK(status_after([](Subgroup& s) { s.gradient[kCountsWord][0] = kTileElements + 1; }) ==
        kTileOverfull);
  CHECK(status_after([](Subgroup& s) { s.gradient[kCountsWord][1] = 0xffffffffu; }) ==
        kTileOverfull);
  CHECK(status_after([](Subgroup& s) { s.gradient[kCountsWord][2] = 101; }) == kTileOverfull);
  CHECK(status_after([](Subgroup& s) { s.gradient[kCountsWord][0] -= 1; }) == kWrongCounts);
  CHECK(status_after([](Subgroup& s) { s.gradient[kCountsWord][3] = 1; }) == kNotZero);
}

TEST_CASE("indices outside of their tile, doubled or descending are refused") {
  const auto kept_in_first = [](const Subgroup& s) { return s.gradient[kCountsWord][0]; };
  CHECK(status_after([](Subgroup& s) { indices_of(s)[1] = indices_of(s)[0]; }) == kBadIndex);
  CHECK(status_after([](Subgroup& s) { std::swap(indices_of(s)[1], indices_of(s)[2]); }) ==
        kBadIndex);
  CHECK(status_after([&](Subgroup& s) { indices_of(s)[kept_in_first(s) - 1] = kTileElements; }) ==
        kBadIndex);
  // The last tile has 100 elements.
  SubgroupSpec full = three_tiles();
  full.density = 1;
  CHECK(status_after([](Subgroup& s) { indices_of(s)[2 * kTile + 99] = 100; }, full) == kBadIndex);
}

TEST_CASE("bytes that pad must be zero") {
  CHECK(status_after([](Subgroup& s) {
          const std::uint32_t kept = s.gradient[0][6];
          const std::size_t words = (kept + 31) / 32;
          REQUIRE(kept % 32 != 0);
          s.gradient[kIndicesWord + words - 1][15] |= 0x10000u;
        }) == kNotZero);
  CHECK(status_after([](Subgroup& s) { s.gradient.back()[15] = 1; }) == kNotZero);
}

TEST_CASE("any flipped bit and any noise ends within its buffers") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    SubgroupSpec spec = three_tiles();
    spec.element_count = 1 + static_cast<std::int64_t>(random() % 40'000);
    spec.density = 0.001 * static_cast<double>(random() % 100);
    spec.gradient_kind =
        round % 2 == 0 ? optimizer::GradientKind::fp32 : optimizer::GradientKind::fp16;
    status_after(
        [&](Subgroup& s) {
          for (int flips = 0; flips < 1 + round % 40; ++flips) {
            // Early words more often: they hold what others are read by.
            const std::size_t word = random() % (flips % 2 == 0 ? s.gradient.size() : 3);
            s.gradient[word % s.gradient.size()][random() % 16] ^= 1u << random() % 32;
          }
        },
        spec);
  }
}

TEST_CASE("arguments that no kernel knows are refused before anything is read") {
  for (const std::uint64_t count : {std::uint64_t{0}, kMaxElements + 1, ~std::uint64_t{0}}) {
    Word result[kResultWords] = {};
    update_sgd(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, result,
               count, 0, kGradientFp32, kParametersNone, 1, 0, 0, 0);
    CHECK(result[0][0] == kBadArguments);
  }
  Word result[kResultWords] = {};
  update_sgd(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, result, 1, 0,
             4, kParametersNone, 1, 0, 0, 0);
  CHECK(result[0][0] == kBadArguments);
  update_sgd(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, result, 1, 0,
             0, 4, 1, 0, 0, 0);
  CHECK(result[0][0] == kBadArguments);
}

TEST_CASE(
    "split state: refusals are those of fp32 state, and nothing beyond the arrays is touched") {
  for (const auto rule : kRules) {
    for (const bool is_foreign : {false, true}) {
      SplitSubgroup subgroup(
          {.plain = {.rule = rule, .element_count = 2 * kTile + 100, .is_sparse = true}});
      if (is_foreign) subgroup.plain.gradient[0][0] ^= 1;
      constexpr std::uint32_t kGuard = 0xabadcafe;
      for (auto& array : subgroup.stored) array.push_back(Word(kGuard));
      run_kernel(subgroup);
      CHECK(subgroup.plain.result[0][0] == (is_foreign ? kForeignGradient : kUpdated));
      for (const auto& array : subgroup.stored) CHECK(array.back() == Word(kGuard));
    }
  }
}

TEST_CASE("split state: arguments that no kernel knows are refused before anything is read") {
  const auto status = [](std::uint64_t count, std::uint32_t gradient_format,
                         std::uint32_t state_format, std::uint64_t first_flat_index) {
    Word result[kResultWords] = {};
    update_sgd_split(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                     nullptr, result, count, 0, gradient_format, state_format, first_flat_index, 0,
                     1, 0, 0, 0);
    return result[0][0];
  };
  CHECK(status(0, kGradientFp32, kStateExact, 0) == kBadArguments);
  CHECK(status(kMaxElements + 1, kGradientFp32, kStateExact, 0) == kBadArguments);
  CHECK(status(1, kGradientSparse + 1, kStateExact, 0) == kBadArguments);
  CHECK(status(1, kGradientFp32, 0, 0) == kBadArguments);
  CHECK(status(1, kGradientFp32, kStateCompact8 + 1, 0) == kBadArguments);
  CHECK(status(1, kGradientFp32, kStateCompact8, 32) == kBadArguments);
}
