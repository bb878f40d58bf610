#pragma once
// What a training loop on torch does for the k largest elements by magnitude: abs, topk without
// sorting, gather. Its results go into tensors that are there already.

#include <cstdint>
#include <memory>
#include <span>

namespace sluice::bench {

class TorchTopK {
 public:
  TorchTopK(std::span<float> values, std::int64_t k, int thread_count);
  ~TorchTopK();
  void select();
  // The sum of the kept indices of the last selection, to compare with.
  std::int64_t sum_of_indices() const;

 private:
  struct Tensors;
  std::int64_t k_;
  std::unique_ptr<Tensors> tensors_;
};

}  // namespace sluice::bench
