#include "core/model/torch/saved_blocks.h"

#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>

#include "core/model/kept_bytes.h"
#include "core/model/torch/check.h"
#include "core/model/torch/tensor_memory.h"

namespace sluice::model {
namespace {

// A storage that is a block of its own has a mapping of its own: whole pages.
static_assert(kOwnBlockBytes >= kLargeTensorBytes);

std::byte* data_of(const c10::Storage& storage) {
  return static_cast<std::byte*>(storage.mutable_data());
}

void take_data(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, c10::Device(c10::DeviceType::CPU)));
}

void give_data(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(c10::GetCPUAllocator()->allocate(storage.nbytes()));
}

}  // namespace

bool SavedBlocks::has(const at::Tensor& tensor) const {
  return std::ranges::any_of(storages_, [&](const Storage& one) {
    return one.storage.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
  });
}

void SavedBlocks::note(const at::Tensor& tensor, std::span<const std::byte> parameters) {
  if (!tensor.has_storage() || tensor.storage().nbytes() == 0 || has(tensor)) return;
  const c10::Storage& storage = tensor.storage();
  const auto* const data = static_cast<const std::byte*>(storage.data());
  if (data >= parameters.data() && data < parameters.data() + parameters.size()) return;
  if (storage.data_ptr().get_deleter() != c10::GetCPUAllocator()->raw_deleter()) return;
  const auto size_bytes = static_cast<std::int64_t>(storage.nbytes());
  storages_.push_back({storage, tensor.detach(), tensor._version(), size_bytes});
  if (is_small(storages_.back())) small_bytes_ += size_bytes;
}

bool SavedBlocks::is_small(const Storage& one) const { return one.size_bytes < kOwnBlockBytes; }

Status SavedBlocks::check_unchanged() const {
  for (const Storage& one : storages_) {
    if (one.tensor._version() == one.version) continue;
    return make_error(ErrorCode::internal,
                      "a tensor of {} bytes that backward needs was changed in place",
                      one.size_bytes);
  }
  return ok_status();
}

void SavedBlocks::list_blocks() {
  blocks_.clear();
  for (const Storage& one : storages_) {
    if (!is_small(one)) blocks_.push_back({data_of(one.storage), one.size_bytes});
  }
  if (small_bytes_ > 0) blocks_.push_back({gathered_.bytes().data(), small_bytes_});
}

Status SavedBlocks::gather_room() {
  if (small_bytes_ == 0) return ok_status();
  ASSIGN_OR_RETURN(gathered_, io::PageAlignedBuffer::allocate(small_bytes_));
  return ok_status();
}

Result<std::span<const KeptBlock>> SavedBlocks::kept() {
  RETURN_IF_ERROR(check_unchanged());
  RETURN_IF_ERROR(gather_room());
  std::byte* into = gathered_.bytes().data();
  for (const Storage& one : storages_) {
    if (!is_small(one)) continue;
    std::memcpy(into, one.storage.data(), static_cast<std::size_t>(one.size_bytes));
    into += one.size_bytes;
  }
  list_blocks();
  return std::span<const KeptBlock>(blocks_);
}

Status SavedBlocks::release() {
  RETURN_IF_ERROR(check_unchanged());
  for (const Storage& one : storages_) take_data(one.storage);
  gathered_ = {};
  return ok_status();
}

Result<std::span<const KeptBlock>> SavedBlocks::make_room() {
  for (const Storage& one : storages_) {
    if (!is_small(one)) give_data(one.storage);
  }
  RETURN_IF_ERROR(gather_room());
  list_blocks();
  return std::span<const KeptBlock>(blocks_);
}

Status SavedBlocks::restore() {
  const std::byte* from = gathered_.bytes().data();
  for (const Storage& one : storages_) {
    if (!is_small(one)) continue;
    give_data(one.storage);
    std::memcpy(data_of(one.storage), from, static_cast<std::size_t>(one.size_bytes));
    from += one.size_bytes;
  }
  gathered_ = {};
  return ok_status();
}

}  // namespace sluice::model
