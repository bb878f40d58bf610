// The operators that make tensors, or look at their memory in another way.

#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <torch/library.h>

#include <cstring>

#include "soft/accelerator/device_scope.h"
#include "soft/accelerator/resize.h"
#include "soft/accelerator/torch_parts.h"

namespace sluice::soft_accelerator {
namespace {

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Allocator* allocator() { return c10::GetAllocator(c10::kPrivateUse1); }

int index_of(std::optional<c10::Device> device) {
  return device_or_current(device ? device->index() : -1);
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout> /*layout*/, std::optional<at::Device> device,
                 std::optional<bool> /*pin_memory*/, std::optional<at::MemoryFormat> format) {
  const DeviceScope scope(index_of(device));
  return at::detail::empty_generic(size, allocator(), kKeys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout> /*layout*/,
                         std::optional<at::Device> device, std::optional<bool> /*pin_memory*/) {
  const DeviceScope scope(index_of(device));
  return at::detail::empty_strided_generic(size, stride, allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::as_strided_tensorimpl(self, size, stride, self.storage_offset());
}

// libtorch's own would copy the old memory on the host.
const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size,
                         std::optional<at::MemoryFormat> format) {
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(size);
  if (format) impl->empty_tensor_restride(*format);
  const auto needed =
      static_cast<std::size_t>(self.storage_offset() + self.numel()) * self.itemsize();
  c10::StorageImpl* const storage = self.storage().unsafeGetStorageImpl();
  if (self.numel() > 0 && needed > storage->nbytes()) resize_storage(*storage, needed);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, std::int64_t offset,
                        at::IntArrayRef size, at::IntArrayRef stride) {
  TORCH_CHECK(storage.device().is_privateuseone(),
              "software accelerator: set_ was given memory of ", storage.device());
  c10::TensorImpl* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (stride.empty() && !size.empty()) {
    impl->set_sizes_contiguous(size);
    impl->set_storage_offset(offset);
  } else {
    impl->set_sizes_and_strides(size, stride, offset);
  }
  return self;
}

void record_stream(at::Tensor& self, at::Stream stream) {
  c10::getDeviceAllocator(c10::kPrivateUse1)->recordStream(self.storage().data_ptr(), stream);
}

}  // namespace

void resize_storage(c10::StorageImpl& storage, std::size_t size_bytes) {
  const int device = device_or_current(storage.device().index());
  const DeviceScope scope(device);
  const std::int64_t stream = current().stream_of(device);
  Accelerator& accelerator = Accelerator::instance();
  c10::DataPtr made = allocator()->allocate(size_bytes);
  const std::size_t kept = std::min(size_bytes, storage.nbytes());
  if (kept > 0) {
    void* const from = accelerator.usable(storage.data());
    void* const to = accelerator.usable(made.get());
    const auto range = [&](const void* address) {
      const auto begin = reinterpret_cast<std::uintptr_t>(address);
      return ByteRange{begin, begin + kept};
    };
    accelerator.submit(
        device, stream, {.name = "resize_", .run = [=] { std::memcpy(to, from, kept); }},
        {{range(storage.data()), AccessKind::read}, {range(made.get()), AccessKind::write}});
    c10::getDeviceAllocator(c10::kPrivateUse1)
        ->recordStream(storage.data_ptr(),
                       c10::Stream(c10::Stream::UNSAFE, storage.device(), stream));
  }
  storage.set_data_ptr_noswap(std::move(made));
  storage.set_nbytes(size_bytes);
}

void register_kernels() {
  static auto* const aten = new torch::Library(torch::Library::IMPL, "aten",
                                               c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  aten->impl("empty.memory_format", TORCH_FN(empty));
  aten->impl("empty_strided", TORCH_FN(empty_strided));
  aten->impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  aten->impl("view", TORCH_FN(at::native::view));
  aten->impl("_reshape_alias", TORCH_FN(reshape_alias));
  aten->impl("resize_", TORCH_FN(resize));
  aten->impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  aten->impl("record_stream", TORCH_FN(record_stream));
}

}  // namespace sluice::soft_accelerator
