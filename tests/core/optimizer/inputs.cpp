#include "tests/core/optimizer/inputs.h"

#include <bit>

#include "hwy/highway.h"

namespace sluice::optimizer {

const std::vector<float>& special_floats() {
  static const std::vector<float> values = [] {
    std::vector<float> both_signs;
    for (const std::uint32_t bits :
         {0x00000000u, 0x00000001u, 0x00400000u, 0x007fffffu,     // zero, subnormals
          0x00800000u, 0x1e3ce508u, 0x33000000u, 0x38800000u,     // smallest normal, 1e-20, fp16's
          0x3a83126fu, 0x3f7fffffu, 0x3f800000u, 0x477ff000u,     // 1e-3, 1, edge of fp16
          0x5f800000u, 0x7f7f8000u, 0x7f7fffffu, 0x7f800000u,     // 2^64, largest, infinity
          0x7f800001u, 0x7fa00000u, 0x7fc00000u, 0x7fffffffu}) {  // NaNs
      both_signs.push_back(std::bit_cast<float>(bits));
      both_signs.push_back(std::bit_cast<float>(bits | 0x80000000u));
    }
    return both_signs;
  }();
  return values;
}

std::vector<float> random_bit_floats(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  return values;
}

std::vector<float> normal_floats(std::int64_t count, float deviation, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::uint16_t> random_halves(std::int64_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& value : values) value = static_cast<std::uint16_t>(random());
  return values;
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  bits.reserve(values.size());
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void for_each_simd_target(const std::function<void(const std::string& name)>& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(hwy::TargetName(target));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace sluice::optimizer
