#pragma once
// How far gradients are from those of a plain model, tensor by tensor.
//
// Thread contract: free functions; check_tensors() within a test case.

#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <vector>

#include "base/float16.h"
#include "core/model/model_shape.h"

namespace sluice::model {

// |a - b| / |b| over a range.
inline double distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += double{b[i]} * b[i];
  }
  return std::sqrt(difference / length);
}

inline std::vector<float> widened(std::span<const std::uint16_t> values, Float16Kind kind) {
  std::vector<float> wide;
  for (const std::uint16_t value : values) wide.push_back(float_from_float16(kind, value));
  return wide;
}

inline std::span<const float> part(const std::vector<float>& all, const TensorInfo& tensor) {
  return std::span(all).subspan(static_cast<std::size_t>(tensor.first),
                                static_cast<std::size_t>(tensor.count));
}

inline void check_tensors(const ModelShape& shape, const std::vector<float>& gradient,
                          const std::vector<float>& expected, double tolerance) {
  REQUIRE(gradient.size() == expected.size());
  for (const TensorInfo& tensor : shape.flat_layout().tensors) {
    INFO(tensor.name);
    CHECK(distance(part(gradient, tensor), part(expected, tensor)) < tolerance);
  }
}

}  // namespace sluice::model
