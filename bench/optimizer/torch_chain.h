#pragma once
// What a training loop on torch does for the same result: its fused AdamW, then the cast of the
// master weights to bf16.

#include <memory>

#include "core/optimizer/update_rule.h"

namespace sluice::bench {

class TorchChain {
 public:
  TorchChain(const optimizer::UpdateOptions& options, const optimizer::UpdateArrays& arrays,
             int thread_count);
  ~TorchChain();
  void step(std::int64_t optimizer_step);

 private:
  struct Tensors;
  optimizer::UpdateOptions options_;
  std::unique_ptr<Tensors> tensors_;
};

}  // namespace sluice::bench
