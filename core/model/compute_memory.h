#pragma once
// The memory that a model takes while it computes, for the memory plan (D9). No libtorch: plans ask
// for models of any family and for machines that are not here.
//
// Thread contract: plain data; free functions, any thread.

#include <cstdint>

#include "base/memory_item.h"
#include "core/model/layer_tape.h"
#include "core/model/model_factory.h"

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
  // The base of adapters on a device with memory of its own: all of it, or the tables and two
  // layers where it comes by layer. In host memory it is a part of the plan of the parameters.
  std::int64_t base_bytes = 0;
};

ComputeMemory compute_memory(const ModelShape& shape, const ModelOptions& options,
                             Products products);

// Its lines in a plan, without `library_bytes` and `base_bytes`.
MemoryItems compute_items(const ComputeMemory& memory);

// All of its lines where the processor computes.
MemoryItems host_items(const ComputeMemory& memory);

}  // namespace sluice::model
