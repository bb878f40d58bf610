#pragma once
// Gradients of every shape that selecting could trip over, all from a seed, and what the tests of
// selections share.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/compress/selection.h"
#include "core/optimizer/update_rule.h"

namespace sluice::compress {

struct NamedGradient {
  std::string name;
  std::vector<float> values;
};

std::vector<float> heavy_tailed_floats(std::int64_t count, std::uint32_t seed);
std::vector<float> uniform_floats(std::int64_t count, std::uint32_t seed);

// Normal, heavy-tailed, evenly distributed, few distinct values, all equal, all zero, with NaN,
// infinity, -0 and subnormals, arbitrary bits.
std::vector<NamedGradient> gradients_of_every_shape(std::int64_t count, std::uint32_t seed);

// What a selection wrote, with guard elements behind it.
struct Kept {
  explicit Kept(std::int64_t capacity);
  KeptRoom room();
  KeptElements elements(std::int64_t count) const;
  bool same_bits(const Kept& other) const;
  bool has_untouched_guards() const;

  std::int64_t capacity;
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
};

// Bytes aligned to 64, in a block of their own of just that size, so that the address sanitizer
// sees what goes beyond.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::span<const std::byte> content);
  explicit AlignedBytes(std::int64_t size) : AlignedBytes(std::vector<std::byte>(size)) {}
  std::span<std::byte> bytes() { return {memory_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t size_;
  std::unique_ptr<std::byte[], Free> memory_;
};

// A whole sparse gradient of every element whose index mod `every` is 0.
AlignedBytes sparse_of(const std::vector<float>& gradient, std::int64_t every,
                       optimizer::GradientKind kind);

}  // namespace sluice::compress
