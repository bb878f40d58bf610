#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/fnv.h"
#include "base/split_mix.h"
#include "core/model/flat_layout.h"

namespace sluice::model {
namespace {

// Box-Muller turns two uniform numbers into two normal ones; elements 2p and 2p+1 of a tensor share
// pair p.
struct NormalPair {
  double even;
  double odd;
};

NormalPair normal_pair(std::uint64_t key, std::int64_t pair) {
  const auto first = static_cast<std::uint64_t>(pair) * 2;
  const double radius = std::sqrt(-2.0 * std::log(unit_interval(split_mix(key, first))));
  const double angle = 2.0 * std::numbers::pi * unit_interval(split_mix(key, first + 1));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Elements [begin, begin + out.size()) of one tensor; the range may begin and end inside a pair.
void fill_normal(std::uint64_t key, double std_dev, std::int64_t begin, std::span<float> out) {
  const std::int64_t end = begin + static_cast<std::int64_t>(out.size());
  for (std::int64_t pair = begin / 2; pair * 2 < end; ++pair) {
    const NormalPair values = normal_pair(key, pair);
    if (pair * 2 >= begin) out[pair * 2 - begin] = static_cast<float>(std_dev * values.even);
    if (pair * 2 + 1 < end) out[pair * 2 + 1 - begin] = static_cast<float>(std_dev * values.odd);
  }
}

void fill_uniform(std::uint64_t key, double bound, std::int64_t begin, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double value = unit_interval(split_mix(key, static_cast<std::uint64_t>(begin) + i));
    out[i] = static_cast<float>(bound * (2 * value - 1));
  }
}

void fill_tensor(const TensorInfo& tensor, std::uint64_t seed, std::int64_t begin,
                 std::span<float> out) {
  const std::uint64_t key = mix64(fnv1a(tensor.name) ^ mix64(seed));
  switch (tensor.init) {
    case TensorInfo::Init::zeros:
      std::fill(out.begin(), out.end(), 0.0f);
      return;
    case TensorInfo::Init::ones:
      std::fill(out.begin(), out.end(), 1.0f);
      return;
    case TensorInfo::Init::normal:
      fill_normal(key, tensor.init_std, begin, out);
      return;
    case TensorInfo::Init::uniform:
      fill_uniform(key, tensor.init_std, begin, out);
      return;
  }
}

}  // namespace

void fill_initial(const FlatLayout& layout, std::uint64_t seed, std::int64_t first,
                  std::span<float> out) {
  const std::int64_t end = first + static_cast<std::int64_t>(out.size());
  CHECK_GE(first, 0);
  CHECK_LE(end, layout.parameter_count);
  if (out.empty()) return;
  auto tensor = std::upper_bound(
      layout.tensors.begin(), layout.tensors.end(), first,
      [](std::int64_t element, const TensorInfo& info) { return element < info.first; });
  for (--tensor; tensor != layout.tensors.end() && tensor->first < end; ++tensor) {
    const std::int64_t begin = std::max(first, tensor->first);
    const std::int64_t stop = std::min(end, tensor->first + tensor->count);
    fill_tensor(*tensor, seed, begin - tensor->first, out.subspan(begin - first, stop - begin));
  }
}

}  // namespace sluice::model
