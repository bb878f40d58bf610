#pragma once
// The most that a model's tensors take in a step, found by going through its phases: the head
// forward and backward, each block backward, the embedding backward. Inside a layer its tape
// (core/model/layer_tape.h) says it.
//
// tests/core/model/memory holds it to the count of libtorch's allocator.
//
// Thread contract: plain data; a free function, any thread.

#include <cstdint>

#include "core/model/layer_tape.h"
#include "core/model/model_factory.h"

namespace sluice::model {

// Without the parameters and without the gradients that are handed over.
struct StepPeak {
  std::int64_t kept_bytes = 0;           // from forward to backward, of all micro-batches
  std::int64_t offloaded_bytes = 0;      // those of them that leave: at once in memory
  std::int64_t beside_bytes = 0;         // of the phase that takes the most
  std::int64_t tied_gradient_bytes = 0;  // waits from the head to the embedding

  std::int64_t bytes() const { return kept_bytes + beside_bytes + tied_gradient_bytes; }
};

StepPeak step_peak(const ModelShape& shape, const ModelOptions& options, Products products);

}  // namespace sluice::model
