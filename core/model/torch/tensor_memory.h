#pragma once
// The memory of libtorch's tensors, for all of the process: no holes stay in it, so that a memory
// plan can bound it (docs/decisions.md, 55).
//
// A large tensor has a mapping of its own. A mapping that is no longer used waits for a tensor of
// the same size, since a step asks for the sizes of the step before. Before new memory is taken,
// the longest waiting mappings go, until those in use and those that wait together take at most
// kSpareBytes more than was ever in use at once. Small tensors lie on the C library's heap.
//
// Thread contract: any thread.

#include <cstdint>

namespace sluice::model {

inline constexpr std::int64_t kLargeTensorBytes = 128 << 10;
inline constexpr std::int64_t kSpareBytes = 8 << 20;

// libtorch takes its memory here from now on. Only the first call does something.
void use_tensor_memory();

struct TensorMemoryUse {  // of large tensors
  std::int64_t in_use_bytes;
  std::int64_t peak_in_use_bytes;
  std::int64_t waiting_bytes;
};
TensorMemoryUse tensor_memory_use();

}  // namespace sluice::model
