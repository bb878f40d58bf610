#pragma once
// A keyed permutation of 0..count-1 that needs no table: a Feistel network over the smallest even
// number of bits that holds `count`, walked until it lands inside (at most a factor of four of the
// domain lies outside, so a walk takes four rounds in the mean at worst).
//
// Thread contract: immutable.

#include <cstdint>

namespace sluice::data {

class Permutation {
 public:
  Permutation(std::uint64_t key, std::uint64_t count);

  std::uint64_t operator()(std::uint64_t index) const;

 private:
  std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t key_;
  std::uint64_t count_;
  int half_bits_;
};

}  // namespace sluice::data
