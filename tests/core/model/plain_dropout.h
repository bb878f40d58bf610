#pragma once
// What dropout drops, written down once more: value by value, of one window.
//
// Thread contract: plain data.

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/split_mix.h"
#include "core/model/trainable_model.h"

namespace sluice::model {

inline bool plain_stays(std::uint32_t key, std::int64_t layer, std::uint32_t place, double share,
                        std::uint32_t index) {
  const auto finish = [](std::uint32_t h, std::uint32_t between) {
    h ^= h >> 16;
    h *= 2246822507u;
    h ^= between;
    h ^= h >> 13;
    h *= 3266489909u;
    h ^= h >> 16;
    return h;
  };
  const std::uint64_t numbers = mix64(static_cast<std::uint64_t>(layer * 256 + place + 1));
  const std::uint32_t add = finish(key, static_cast<std::uint32_t>(numbers));
  const std::uint32_t between = finish(key, static_cast<std::uint32_t>(numbers >> 32));
  const std::uint32_t number = finish(index * 2654435761u + add, between) & 0x7fffffffu;
  return static_cast<double>(number) >= share * 2147483648.0;
}

// One window's.
struct PlainDrop {
  bool is_on = false;
  std::uint32_t key = 0;

  // The first of `values` has index `first` of its place.
  at::Tensor operator()(const at::Tensor& values, std::int64_t layer, std::uint32_t place,
                        double share, std::int64_t first = 0) const {
    if (!is_on || share == 0) return values;
    std::vector<float> factors;
    for (std::int64_t i = 0; i < values.numel(); ++i) {
      const bool stays =
          plain_stays(key, layer, place, share, static_cast<std::uint32_t>(first + i));
      factors.push_back(stays ? static_cast<float>(1 / (1 - share)) : 0.0f);
    }
    return values * at::tensor(factors).view(values.sizes());
  }
};

// The one of a batch's row.
inline PlainDrop plain_drop(const TokenBatch& batch, std::int64_t row) {
  if (batch.drop_keys.empty()) return {};
  return {true, batch.drop_keys[static_cast<std::size_t>(row)]};
}

}  // namespace sluice::model
