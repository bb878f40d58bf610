#pragma once
// Bytes of host memory as a tensor, for copies between it and a device.
//
// Thread contract: any thread. libtorch's exceptions go through.

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>

namespace sluice::model {

// A view: the memory outlives it. What is const is only copied from.
inline at::Tensor bytes_in_host_memory(const void* data, std::int64_t size_bytes) {
  return at::from_blob(const_cast<void*>(data), {size_bytes}, at::kByte);
}

}  // namespace sluice::model
