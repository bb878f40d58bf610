#pragma once
// What a model takes while it computes, for the memory plan (D9).
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::model {

// Upper bound of the resident memory that the model takes besides the flat parameters: libtorch
// itself, activations of all micro-batches, temporaries of the widest layer, the tied table's
// gradient.
struct ComputeMemory {
  std::int64_t library_bytes;  // libtorch and the program, before anything is computed
  std::int64_t activation_bytes;
  std::int64_t temporary_bytes;  // peak inside one layer's forward or backward
  std::int64_t tied_gradient_bytes;
  std::int64_t offloaded_bytes;  // of the activations, those that leave: at once in memory
};

}  // namespace sluice::model
