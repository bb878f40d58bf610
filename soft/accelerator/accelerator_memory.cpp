// Blocks. A freed one goes back when each stream that used it has come to a marker, and is filled
// with 0xFF first: whoever still uses it reads NaN.

#include <c10/util/Exception.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "soft/accelerator/accelerator.h"

namespace sluice::soft_accelerator {
namespace {

// A device's blocks are multiples of it. It is a multiple of 64 itself, to which libtorch aligns
// memory of the CPU: kernels may take other ways through memory that begins elsewhere, and then
// round otherwise.
constexpr std::int64_t kBlockBytes = 512;
constexpr std::int64_t kPageBytes = 4096;

std::int64_t rounded(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t size_of(const Block& block) {
  return static_cast<std::int64_t>(block.range.end - block.range.begin);
}

ByteRange range_of(const void* address, std::int64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return {begin, begin + static_cast<std::uintptr_t>(bytes)};
}

}  // namespace

Block* Accelerator::allocate(int device, std::int64_t stream_id, std::int64_t bytes) {
  const std::int64_t size = rounded(bytes, kBlockBytes);
  Lock lock(mutex_);
  check_alive(device);
  const Stream& stream = stream_at(device, stream_id);
  const std::int64_t offset = room_for(lock, device, size, bytes);
  Device& owner = device_at(device);
  owner.used_bytes += size;
  owner.peak_bytes = std::max(owner.peak_bytes, owner.used_bytes);
  auto* const block = new Block{.number = next_block_++,
                                .range = range_of(owner.region.shown(offset), size),
                                .asked_bytes = bytes,
                                .device = device};
  block->streams.push_back(stream.index);
  blocks_[block->range.begin] = block;
  return block;
}

// Waits for freed blocks only where they would be enough, so that what fails is decided by the
// program alone.
std::int64_t Accelerator::room_for(Lock& lock, int device, std::int64_t bytes, std::int64_t asked) {
  Device& owner = device_at(device);
  const bool is_struck = settings_.strikes(FaultKind::oom, ++owner.allocations, device);
  for (;;) {
    const bool fits = owner.used_bytes + bytes <= owner.cap_bytes;
    if (fits && !is_struck)
      if (const auto offset = owner.region.take(bytes)) return *offset;
    const bool may_fit = owner.used_bytes - owner.freed_bytes + bytes <= owner.cap_bytes;
    if (is_struck || !may_fit || owner.freed_bytes == 0 || is_stopping_) break;
    finished_.wait(lock);
    check_alive(device);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, false, "software accelerator: out of memory on soft:", device,
                   ": ", asked, " bytes were asked for, ", owner.used_bytes, " of ",
                   owner.cap_bytes, " are in use", is_struck ? " (as the settings want it)" : "");
}

void Accelerator::release(Block* block) {
  const Lock lock(mutex_);
  check_release(*block);
  devices_[static_cast<std::size_t>(block->device)]->freed_bytes += size_of(*block);
  block->markers_left = static_cast<int>(block->streams.size());
  for (const int stream : block->streams) {
    Job job{.kind = JobKind::release, .name = "release of memory"};
    job.run = [this, block] { pass_marker(block); };
    enqueue(*streams_[static_cast<std::size_t>(stream)], std::move(job));
  }
}

void Accelerator::pass_marker(Block* block) {
  Device* owner = nullptr;
  {
    const Lock lock(mutex_);
    if (--block->markers_left > 0) return;
    owner = &device_at(block->device);
  }
  void* const shown = reinterpret_cast<void*>(block->range.begin);
  const std::int64_t size = size_of(*block);
  std::memset(owner->region.usable(shown), 0xFF, static_cast<std::size_t>(size));
  const Lock lock(mutex_);
  owner->region.give(owner->region.offset_of(shown), size);
  owner->used_bytes -= size;
  owner->freed_bytes -= size;
  blocks_.erase(block->range.begin);
  delete block;
}

// A job is over before the block goes back if one of the streams that the block waits for knows it.
void Accelerator::check_release(const Block& block) {
  const auto wrong = block.history.unfinished([&](const StreamTicket& job) {
    if (host_.knows(job)) return true;
    for (const int stream : block.streams)
      if (streams_[static_cast<std::size_t>(stream)]->clock.knows(job)) return true;
    return false;
  });
  if (!wrong) return;
  keep("software accelerator: " + text_of(block) + " is freed, and stream '" +
       streams_[static_cast<std::size_t>(wrong->job.stream)]->name + "' may still be " +
       (wrong->kind == AccessKind::write ? "writing" : "reading") + " it (" + wrong->job.what +
       "): no record_stream and no event orders them");
}

Block* Accelerator::allocate_pinned(std::int64_t bytes) {
  const std::int64_t size = rounded(bytes, kPageBytes);
  void* const address =
      std::aligned_alloc(static_cast<std::size_t>(kPageBytes), static_cast<std::size_t>(size));
  if (address == nullptr) throw std::bad_alloc();
  std::memset(address, 0xFF, static_cast<std::size_t>(size));
  const Lock lock(mutex_);
  auto* const block =
      new Block{.number = next_block_++, .range = range_of(address, size), .asked_bytes = bytes};
  blocks_[block->range.begin] = block;
  ++common_.pinned_blocks;
  common_.pinned_bytes += bytes;
  return block;
}

// A driver waits here for the jobs that still use the memory. A job of this device may be stuck for
// good, so such memory stays, until the process ends.
void Accelerator::release_pinned(Block* block) {
  {
    const Lock lock(mutex_);
    blocks_.erase(block->range.begin);
    --common_.pinned_blocks;
    common_.pinned_bytes -= block->asked_bytes;
    const auto used = block->history.unfinished([&](const StreamTicket& job) {
      return streams_[static_cast<std::size_t>(job.stream)]->done >= job.ticket;
    });
    if (used) return;
  }
  std::free(reinterpret_cast<void*>(block->range.begin));
  delete block;
}

void Accelerator::use_on_stream(Block* block, int device, std::int64_t stream_id) {
  const Lock lock(mutex_);
  const int index = stream_at(device, stream_id).index;
  for (const int known : block->streams)
    if (known == index) return;
  block->streams.push_back(index);
}

void Accelerator::set_cap(int device, std::int64_t bytes) {
  const Lock lock(mutex_);
  device_at(device).cap_bytes = bytes;
}

void Accelerator::reset_peak(int device) {
  const Lock lock(mutex_);
  device_at(device).peak_bytes = device_at(device).used_bytes;
}

Block* Accelerator::block_at(std::uintptr_t address) {
  auto at = blocks_.upper_bound(address);
  if (at == blocks_.begin()) return nullptr;
  --at;
  return address < at->second->range.end ? at->second : nullptr;
}

bool Accelerator::is_pinned(const void* address) {
  const Lock lock(mutex_);
  const Block* const block = block_at(reinterpret_cast<std::uintptr_t>(address));
  return block != nullptr && block->device == kPinned;
}

int Accelerator::device_of(const void* address) const {
  for (int i = 0; i < device_count(); ++i)
    if (devices_[static_cast<std::size_t>(i)]->region.has(address)) return i;
  return -1;
}

void* Accelerator::usable(const void* shown) const {
  const int device = device_of(shown);
  if (device < 0) return const_cast<void*>(shown);
  return devices_[static_cast<std::size_t>(device)]->region.usable(shown);
}

bool Accelerator::is_device_memory(const void* address) const {
  for (const auto& device : devices_)
    if (device->region.has(address) || device->region.has_usable(address)) return true;
  return false;
}

bool Accelerator::try_describe(const void* address, char* text, std::size_t size) {
  const Lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const Block* const block = block_at(at);
  if (block == nullptr) return false;
  std::snprintf(text, size, "offset %lld of block %lld (%lld bytes%s%s%s)",
                static_cast<long long>(at - block->range.begin),
                static_cast<long long>(block->number), static_cast<long long>(block->asked_bytes),
                block->name.empty() ? "" : ", '", block->name.c_str(),
                block->name.empty() ? "" : "'");
  return true;
}

}  // namespace sluice::soft_accelerator
