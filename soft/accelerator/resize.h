#pragma once
// More room for a storage on the device: other memory, to which the stream copies the old.
//
// Thread contract: the thread that owns the tensor.
// Errors: c10::Error: out of memory, or no order with what was done to the old memory.

#include <c10/core/StorageImpl.h>

#include <cstddef>

namespace sluice::soft_accelerator {

void resize_storage(c10::StorageImpl& storage, std::size_t size_bytes);

}  // namespace sluice::soft_accelerator
