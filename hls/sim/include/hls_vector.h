#pragma once
// Stands in for Vitis HLS's hls_vector.h where v++ is not there: `hls::vector<T, N>`, N elements
// side by side, aligned to their whole size. Only what the kernels use of it (UG1399, "Vector Data
// Types").
//
// Thread contract: plain values.

#include <array>
#include <cstddef>

namespace hls {

template <typename T, std::size_t N>
class alignas(sizeof(T) * N) vector {
  static_assert((N & (N - 1)) == 0, "the stand-in is for powers of two");

 public:
  vector() = default;
  // Every element is `value`. Implicit, as in the vendor's.
  vector(const T& value) { elements_.fill(value); }

  T& operator[](std::size_t i) { return elements_[i]; }
  const T& operator[](std::size_t i) const { return elements_[i]; }
  bool operator==(const vector& other) const { return elements_ == other.elements_; }

 private:
  std::array<T, N> elements_;
};

}  // namespace hls
