#include "soft/accelerator/alias.h"

#include <ATen/core/List.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace sluice::soft_accelerator {

bool is_on_device(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().is_privateuseone();
}

void mark_as_number(const at::Tensor& like, const at::Tensor& tensor) {
  if (like.unsafeGetTensorImpl()->is_wrapped_number())
    tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
}

at::Tensor Aliases::of(const at::Tensor& tensor) {
  const c10::StorageImpl* const key = tensor.storage().unsafeGetStorageImpl();
  auto found = storages_.find(key);
  if (found == storages_.end()) {
    void* const memory = Accelerator::instance().usable(key->data());
    c10::Storage storage(c10::Storage::use_byte_size_t(), static_cast<std::int64_t>(key->nbytes()),
                         c10::DataPtr(memory, c10::Device(c10::kCPU)), c10::GetCPUAllocator(),
                         /*resizable=*/false);
    found = storages_.emplace(key, std::move(storage)).first;
  }
  at::Tensor alias = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(found->second), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  c10::TensorImpl* const impl = alias.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  mark_as_number(tensor, alias);
  return alias;
}

void add_use(std::vector<Use>& uses, const at::Tensor& tensor, AccessKind kind) {
  if (!tensor.defined() || tensor.numel() == 0) return;
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto item = static_cast<std::int64_t>(tensor.itemsize());
  const auto begin =
      reinterpret_cast<std::uintptr_t>(tensor.storage().unsafeGetStorageImpl()->data()) +
      static_cast<std::uintptr_t>(tensor.storage_offset() * item);
  uses.push_back({{begin, begin + static_cast<std::uintptr_t>((last + 1) * item)}, kind});
}

c10::IValue with_tensors(const c10::IValue& value,
                         const std::function<at::Tensor(const at::Tensor&)>& replace) {
  const auto replaced = [&](const at::Tensor& tensor) {
    return tensor.defined() ? replace(tensor) : tensor;
  };
  if (value.isTensor()) return replaced(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(replaced(tensor));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
      list.push_back(tensor ? std::optional(replaced(*tensor)) : std::nullopt);
    return list;
  }
  return value;
}

void for_each_tensor(const c10::IValue& value,
                     const std::function<void(const at::Tensor&)>& function) {
  with_tensors(value, [&](const at::Tensor& tensor) {
    function(tensor);
    return tensor;
  });
}

}  // namespace sluice::soft_accelerator
