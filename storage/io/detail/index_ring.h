#pragma once
// A first-in first-out queue of indices with a fixed capacity: takes its memory once.
// Thread contract: its owner's.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace sluice::io::detail {

class IndexRing {
 public:
  explicit IndexRing(std::size_t capacity) : indices_(capacity) {}

  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }

  void push(std::uint32_t index) {
    CHECK_LT(count_, indices_.size());
    indices_[(first_ + count_++) % indices_.size()] = index;
  }

  std::uint32_t pop() {
    CHECK_GT(count_, 0U);
    const std::uint32_t index = indices_[first_];
    first_ = (first_ + 1) % indices_.size();
    --count_;
    return index;
  }

 private:
  std::vector<std::uint32_t> indices_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace sluice::io::detail
