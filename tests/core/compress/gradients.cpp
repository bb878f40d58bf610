#include "tests/core/compress/gradients.h"

#include <cmath>
#include <cstring>
#include <random>

#include "core/compress/sparse_gradient.h"
#include "tests/core/optimizer/inputs.h"

namespace sluice::compress {
namespace {

constexpr std::size_t kGuards = 40;
constexpr std::uint32_t kGuardIndex = 0xdeadbeef;
constexpr float kGuardValue = -123.5f;

std::vector<float> few_distinct_floats(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values = optimizer::normal_floats(count, 2.0f, seed);
  for (float& value : values) value = std::round(value);
  return values;
}

std::vector<float> floats_with_specials(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values = optimizer::normal_floats(count, 1e-3f, seed);
  const std::vector<float>& specials = optimizer::special_floats();
  std::mt19937 random(seed);
  for (float& value : values) {
    if (random() % 3 == 0) value = specials[random() % specials.size()];
  }
  return values;
}

}  // namespace

std::vector<float> heavy_tailed_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::cauchy_distribution<float> cauchy(0, 1e-4f);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = cauchy(random);
  return values;
}

std::vector<float> uniform_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

std::vector<NamedGradient> gradients_of_every_shape(std::int64_t count, std::uint32_t seed) {
  const auto size = static_cast<std::size_t>(count);
  return {{"normal", optimizer::normal_floats(count, 1e-2f, seed)},
          {"heavy-tailed", heavy_tailed_floats(count, seed)},
          {"uniform", uniform_floats(count, seed)},
          {"few distinct", few_distinct_floats(count, seed)},
          {"all equal", std::vector<float>(size, -0.25f)},
          {"all zero", std::vector<float>(size, 0.0f)},
          {"with specials", floats_with_specials(count, seed)},
          {"arbitrary bits", optimizer::random_bit_floats(count, seed)}};
}

Kept::Kept(std::int64_t room_capacity)
    : capacity(room_capacity),
      indices(static_cast<std::size_t>(room_capacity) + kGuards, kGuardIndex),
      values(static_cast<std::size_t>(room_capacity) + kGuards, kGuardValue) {}

KeptRoom Kept::room() {
  return {.indices = indices.data(), .values = values.data(), .capacity = capacity};
}

KeptElements Kept::elements(std::int64_t count) const {
  const auto size = static_cast<std::size_t>(count);
  return {.indices = std::span(indices).first(size), .values = std::span(values).first(size)};
}

bool Kept::same_bits(const Kept& other) const {
  return indices == other.indices && optimizer::bits_of(values) == optimizer::bits_of(other.values);
}

bool Kept::has_untouched_guards() const {
  for (std::size_t i = static_cast<std::size_t>(capacity); i < indices.size(); ++i) {
    if (indices[i] != kGuardIndex || values[i] != kGuardValue) return false;
  }
  return true;
}

AlignedBytes::AlignedBytes(std::span<const std::byte> content) : size_(content.size()) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 64, std::max<std::size_t>(size_, 1)) != 0) std::abort();
  memory_.reset(static_cast<std::byte*>(memory));
  if (size_ > 0) std::memcpy(memory, content.data(), size_);
}

AlignedBytes sparse_of(const std::vector<float>& gradient, std::int64_t every,
                       optimizer::GradientKind kind) {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  for (std::size_t i = 0; i < gradient.size(); i += static_cast<std::size_t>(every)) {
    indices.push_back(static_cast<std::uint32_t>(i));
    values.push_back(gradient[i]);
  }
  const auto count = static_cast<std::int64_t>(gradient.size());
  AlignedBytes sparse(
      sparse_gradient_bytes(count, static_cast<std::int64_t>(indices.size()), kind));
  encode_sparse_gradient({.indices = indices, .values = values}, count, kind, sparse.bytes());
  return sparse;
}

}  // namespace sluice::compress
