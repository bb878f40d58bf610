#pragma once
// The weights of a model with what its adapters add to them, W + (alpha / rank) B A, as flat
// parameters of the model (docs/lora.md).
//
// Thread contract: immutable; read() may be called from any number of threads.

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/lora.h"
#include "core/weights/checkpoint.h"

namespace sluice::weights {

class MergedWeights {
 public:
  // `adapters`: all of the shape's, in flat order. The base outlives this.
  MergedWeights(const model::ModelShape& shape, const Checkpoint& base,
                std::vector<float> adapters);

  // Elements [first, first + out.size()) of ModelShape::base_layout(). Errors: those of the base.
  Status fill(std::int64_t first, std::span<float> out) const;

 private:
  struct Matrix {  // in flat elements
    model::LinearModule module;
    std::int64_t weight = 0;
    std::int64_t a = 0;
    std::int64_t b = 0;
  };
  float added(const Matrix& matrix, std::int64_t element) const;

  const Checkpoint& base_;
  std::vector<float> adapters_;
  std::int64_t rank_;
  double scale_;
  bool is_in_out_;
  std::vector<Matrix> matrices_;
};

}  // namespace sluice::weights
