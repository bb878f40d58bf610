#include "core/optimizer/split_update.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::optimizer {
namespace {

// What a rule keeps beside the master weights.
struct Codes {
  ArrayCode exact;
  ArrayCode compact;
};
constexpr Codes kMean = {ArrayCode::fp32, ArrayCode::mean8};
constexpr Codes kMeanSquare = {ArrayCode::fp32_with_ties, ArrayCode::square8};
constexpr Codes kSum = {ArrayCode::fp32_with_ties, ArrayCode::bf16};

std::vector<Codes> codes_of(RuleKind rule) {
  switch (rule) {
    case RuleKind::adamw:
      return {kMean, kMeanSquare};
    case RuleKind::sgd:
      return {kMean};
    case RuleKind::adagrad:
      break;
  }
  return {kSum};
}

ArrayCode remainder_code(RuleKind rule, const StateFormat& format) {
  if (format.kind == StateFormatKind::exact) {
    // A momentum has both signs, so that none is left for the ties.
    return rule == RuleKind::sgd ? ArrayCode::low16_with_ties : ArrayCode::low16;
  }
  return format.remainder_bits == 8 ? ArrayCode::low8 : ArrayCode::low16;
}

}  // namespace

StoredArrays stored_arrays(RuleKind rule, const StateFormat& format) {
  StoredArrays stored;
  if (!format.is_split()) {
    stored.count = rule_info(rule).state_count();
    return stored;
  }
  const auto add = [&stored](ArrayCode code) {
    stored.codes[static_cast<std::size_t>(stored.count++)] = code;
  };
  add(ArrayCode::high);
  add(remainder_code(rule, format));
  for (const Codes& codes : codes_of(rule)) {
    add(format.kind == StateFormatKind::exact ? codes.exact : codes.compact);
  }
  return stored;
}

std::vector<std::string> stored_names(RuleKind rule, const StateFormat& format) {
  const std::span<const char* const> names = rule_info(rule).state_names;
  if (!format.is_split()) return {names.begin(), names.end()};
  std::vector<std::string> stored = {"parameters", "remainder"};
  stored.insert(stored.end(), names.begin() + 1, names.end());
  return stored;
}

void update_reference(const UpdateScalars& scalars, const SplitArrays& arrays) {
  const auto decoded_count = static_cast<std::size_t>(arrays.state.arrays.decoded_count());
  std::vector<std::vector<float>> values(decoded_count, std::vector<float>(kBlockElements));
  for (std::int64_t first = 0; first < arrays.state.element_count; first += kBlockElements) {
    const std::int64_t count = std::min(kBlockElements, arrays.state.element_count - first);
    const SplitArrays block = slice(arrays, first, count);
    UpdateArrays plain{
        .element_count = count, .gradient = block.gradient, .gradient_kind = block.gradient_kind};
    std::vector<std::span<const float>> updated;
    for (std::size_t v = 0; v < decoded_count; ++v) {
      const std::span<float> of_block = std::span(values[v]).first(static_cast<std::size_t>(count));
      decode(block.state, static_cast<std::int32_t>(v), 0, of_block);
      plain.state[v] = of_block.data();
      updated.emplace_back(of_block);
    }
    update_reference(scalars, plain);
    encode(updated, block.rounding, block.first_flat_index, block.state);
  }
}

SplitArrays slice(const SplitArrays& arrays, std::int64_t first, std::int64_t count) {
  CHECK_EQ(first % kBlockElements, 0);
  CHECK_LE(first, arrays.state.element_count - count);
  CHECK(count % kBlockElements == 0 || first + count == arrays.state.element_count);
  SplitArrays part = arrays;
  part.state.element_count = count;
  for (std::int32_t a = 0; a < arrays.state.arrays.count; ++a) {
    const auto at = static_cast<std::size_t>(a);
    part.state.data[at] += array_bytes(arrays.state.arrays.codes[at], first);
  }
  if (arrays.gradient != nullptr) {
    part.gradient =
        static_cast<const std::byte*>(arrays.gradient) + first * bytes_of(arrays.gradient_kind);
  }
  part.first_flat_index += first;
  return part;
}

}  // namespace sluice::optimizer
