#include "core/model/torch/saved_blocks.h"

#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/units.h"
#include "core/model/kept_bytes.h"
#include "core/model/torch/check.h"
#include "core/model/torch/host_bytes.h"
#include "core/model/torch/tensor_memory.h"

namespace sluice::model {
namespace {

// A storage that is a block of its own has a mapping of its own: whole pages.
static_assert(kOwnBlockBytes >= kLargeTensorBytes);

std::byte* data_of(const c10::Storage& storage) {
  return static_cast<std::byte*>(storage.mutable_data());
}

void take_data(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
}

void give_data(const c10::Storage& storage) {
  storage.set_data_ptr_noswap(c10::GetAllocator(storage.device_type())->allocate(storage.nbytes()));
}

// A part of a storage's bytes.
at::Tensor bytes_of(const c10::Storage& storage, BytePart part) {
  at::Tensor bytes = at::empty({0}, at::TensorOptions(storage.device()).dtype(at::kByte));
  bytes.set_(storage, part.first_byte, {part.size_bytes}, {1});
  return bytes;
}

// The bytes from `first` on that are in the part; empty: nothing.
BytePart within(BytePart part, std::int64_t first, std::int64_t size_bytes) {
  const std::int64_t begin = std::max(part.first_byte, first);
  const std::int64_t end = std::min(part.first_byte + part.size_bytes, first + size_bytes);
  return {begin - first, std::max<std::int64_t>(0, end - begin)};
}

}  // namespace

bool SavedBlocks::has(const at::Tensor& tensor) const {
  return std::ranges::any_of(storages_, [&](const Storage& one) {
    return one.storage.unsafeGetStorageImpl() == tensor.storage().unsafeGetStorageImpl();
  });
}

bool SavedBlocks::is_left_out(const c10::Storage& storage) const {
  const std::vector<const void*>& others = memory_->not_the_layers;
  if (std::ranges::find(others, storage.unsafeGetStorageImpl()) != others.end()) return true;
  if (is_on_device()) return storage.device() != memory_->device;
  const auto* const data = static_cast<const std::byte*>(storage.data());
  const std::span<const std::byte> parameters = memory_->parameters;
  if (data >= parameters.data() && data < parameters.data() + parameters.size()) return true;
  return storage.data_ptr().get_deleter() != c10::GetCPUAllocator()->raw_deleter();
}

void SavedBlocks::note(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.storage().nbytes() == 0 || has(tensor)) return;
  const c10::Storage& storage = tensor.storage();
  if (is_left_out(storage)) return;
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

// Large storages one after the other, each from a page on; behind them the small ones.
template <typename Use>
void SavedBlocks::for_each_place(const Use& use) const {
  std::int64_t first = 0;
  std::size_t block = 0;
  for (const Storage& one : storages_) {
    if (is_small(one)) continue;
    use(one, first, blocks_[block++].data);
    first += one.size_bytes;
  }
  std::byte* data = small_bytes_ > 0 ? blocks_[block].data : nullptr;
  for (const Storage& one : storages_) {
    if (!is_small(one)) continue;
    use(one, first, data);
    first += one.size_bytes;
    data += one.size_bytes;
  }
}

void SavedBlocks::list_blocks() {
  blocks_.clear();
  std::byte* staged = staged_.bytes().data();
  for (const Storage& one : storages_) {
    if (is_small(one)) continue;
    blocks_.push_back({is_on_device() ? staged : data_of(one.storage), one.size_bytes});
    if (is_on_device()) staged += round_up(one.size_bytes, kPageBytes);
  }
  if (small_bytes_ == 0) return;
  blocks_.push_back({is_on_device() ? staged : gathered_.bytes().data(), small_bytes_});
}

// The storages without a place yet: the small ones, or all of a device's.
Status SavedBlocks::take_room() {
  if (!is_on_device()) {
    if (small_bytes_ == 0) return ok_status();
    ASSIGN_OR_RETURN(gathered_, io::PageAlignedBuffer::allocate(small_bytes_));
    return ok_status();
  }
  std::int64_t size_bytes = round_up(small_bytes_, kPageBytes);
  for (const Storage& one : storages_) {
    if (!is_small(one)) size_bytes += round_up(one.size_bytes, kPageBytes);
  }
  ASSIGN_OR_RETURN(staged_, memory_->staging->take(size_bytes));
  return ok_status();
}

Result<std::span<const KeptBlock>> SavedBlocks::kept() {
  RETURN_IF_ERROR(check_unchanged());
  RETURN_IF_ERROR(take_room());
  list_blocks();
  if (!is_on_device()) {
    for_each_place([&](const Storage& one, std::int64_t /*first*/, std::byte* into) {
      if (!is_small(one)) return;
      std::memcpy(into, one.storage.data(), static_cast<std::size_t>(one.size_bytes));
    });
  }
  return std::span<const KeptBlock>(blocks_);
}

Status SavedBlocks::release() {
  RETURN_IF_ERROR(release_device());
  give_room_back();
  return ok_status();
}

Status SavedBlocks::release_device() {
  RETURN_IF_ERROR(check_unchanged());
  for (const Storage& one : storages_) take_data(one.storage);
  return ok_status();
}

Result<std::span<const KeptBlock>> SavedBlocks::make_room() {
  for (const Storage& one : storages_) {
    if (!is_on_device() && !is_small(one)) give_data(one.storage);
  }
  RETURN_IF_ERROR(take_room());
  list_blocks();
  return std::span<const KeptBlock>(blocks_);
}

Status SavedBlocks::restore() {
  if (!is_on_device()) {
    for_each_place([&](const Storage& one, std::int64_t /*first*/, const std::byte* from) {
      if (!is_small(one)) return;
      give_data(one.storage);
      std::memcpy(data_of(one.storage), from, static_cast<std::size_t>(one.size_bytes));
    });
  }
  give_room_back();
  return ok_status();
}

void SavedBlocks::give_room_back() {
  gathered_ = {};
  if (memory_->staging != nullptr) memory_->staging->give_back(std::exchange(staged_, {}));
}

void SavedBlocks::forget() {
  give_room_back();
  *this = SavedBlocks(*memory_);
}

void SavedBlocks::copy_out(BytePart part) const {
  for_each_place([&](const Storage& one, std::int64_t first, std::byte* into) {
    const BytePart wanted = within(part, first, one.size_bytes);
    if (wanted.size_bytes == 0) return;
    bytes_in_host_memory(into + wanted.first_byte, wanted.size_bytes)
        .copy_(bytes_of(one.storage, wanted), /*non_blocking=*/true);
  });
}

void SavedBlocks::copy_in(BytePart part, const c10::Stream& user) {
  const c10::impl::VirtualGuardImpl guard(memory_->device.type());
  for_each_place([&](const Storage& one, std::int64_t first, std::byte* from) {
    if (one.storage.data() == nullptr) {
      give_data(one.storage);
      guard.recordDataPtrOnStream(one.storage.data_ptr(), user);
    }
    const BytePart wanted = within(part, first, one.size_bytes);
    if (wanted.size_bytes == 0) return;
    bytes_of(one.storage, wanted)
        .copy_(bytes_in_host_memory(from + wanted.first_byte, wanted.size_bytes),
               /*non_blocking=*/true);
  });
}

}  // namespace sluice::model
