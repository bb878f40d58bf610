#pragma once
// Tensors of the device as tensors of the CPU over the same bytes, for the CPU's kernels. They hold
// no reference: what is freed too early is gone for them, as it is for a GPU's kernels.
//
// Thread contract: plain values, one thread at a time.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <unordered_map>
#include <vector>

#include "soft/accelerator/accelerator.h"

namespace sluice::soft_accelerator {

// Makes aliases for one job. Tensors of one storage get aliases of one storage.
class Aliases {
 public:
  at::Tensor of(const at::Tensor& tensor);

 private:
  std::unordered_map<const c10::StorageImpl*, c10::Storage> storages_;
};

bool is_on_device(const at::Tensor& tensor);

// A number of the program's, which does not decide the type of what it is added to.
void mark_as_number(const at::Tensor& like, const at::Tensor& tensor);

// From a tensor's first byte to its last. Adds nothing for an empty one.
void add_use(std::vector<Use>& uses, const at::Tensor& tensor, AccessKind kind);

// The value with each tensor in it replaced, lists included; undefined ones stay.
c10::IValue with_tensors(const c10::IValue& value,
                         const std::function<at::Tensor(const at::Tensor&)>& replace);
void for_each_tensor(const c10::IValue& value,
                     const std::function<void(const at::Tensor&)>& function);

}  // namespace sluice::soft_accelerator
