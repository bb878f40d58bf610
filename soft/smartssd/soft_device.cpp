// Buffers and contexts; soft_device_runs.cpp has what starts units.

#include "soft/smartssd/soft_device.h"

#include <unistd.h>
#include <xrt_mem.h>

#include <cstring>
#include <thread>

namespace sluice::soft_smartssd {

namespace {

constexpr int kDevicesMax = 16;

struct OpenDevices {
  Mutex mutex;
  std::array<std::weak_ptr<SoftDevice>, kDevicesMax> devices GUARDED_BY(mutex);
};
OpenDevices& open_devices() {
  static auto* devices = new OpenDevices;  // XRT's own statics close devices at exit
  return *devices;
}

struct Exports {
  Mutex mutex;
  std::map<int, std::shared_ptr<Buffer>> buffers GUARDED_BY(mutex);
};
Exports& exports() {
  static auto* kept = new Exports;
  return *kept;
}

bool overlap(const Buffer& buffer, std::uint64_t a, std::uint64_t b, std::uint64_t count) {
  return buffer.size_bytes() > 0 && a < b + count && b < a + count;
}

}  // namespace

std::array<std::uint16_t, 4> bdf_of(int device) {
  return {0x5357, static_cast<std::uint16_t>(device + 1), 0, 1};
}

std::string bdf_text(int device) {
  const auto bdf = bdf_of(device);
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", bdf[0], bdf[1], bdf[2], bdf[3]);
}

SoftDevice::SoftDevice(int index, const Settings& settings, const Rates& rates,
                       std::shared_ptr<DeviceMemory> memory)
    : index_(index),
      settings_(settings),
      rates_(rates),
      memory_(std::move(memory)),
      faults_(settings, index) {}

Result<std::shared_ptr<SoftDevice>> SoftDevice::open(int index) {
  ASSIGN_OR_RETURN(const Settings settings, settings_of_environment());
  OpenDevices& open = open_devices();
  MutexLock lock(open.mutex);
  if (index < 0 || index >= settings.devices)
    return make_error(ErrorCode::not_found, "there is no device {}; devices={}", index,
                      settings.devices);
  std::weak_ptr<SoftDevice>& place = open.devices[static_cast<std::size_t>(index)];
  if (std::shared_ptr<SoftDevice> device = place.lock()) return device;
  ASSIGN_OR_RETURN(const Rates rates, Rates::of(settings, index));
  ASSIGN_OR_RETURN(std::shared_ptr<DeviceMemory> memory,
                   DeviceMemory::create(static_cast<std::uint64_t>(settings.memory_mib) << 20));
  std::shared_ptr<SoftDevice> device(new SoftDevice(index, settings, rates, std::move(memory)));
  place = device;
  return device;
}

Status SoftDevice::check_present() const {
  if (is_lost_) return make_error(ErrorCode::io, "device {} is lost", bdf_text(index_));
  return ok_status();
}

BufferHandle SoftDevice::keep(std::shared_ptr<Buffer> buffer) {
  MutexLock lock(mutex_);
  buffers_[next_handle_] = std::move(buffer);
  return next_handle_++;
}

Result<BufferHandle> SoftDevice::allocate(std::uint64_t size_bytes, unsigned flags, void* host) {
  RETURN_IF_ERROR(check_present());
  if (size_bytes == 0) return make_error(ErrorCode::config, "a buffer of no bytes");
  if ((flags & XCL_BO_FLAGS_EXECBUF) != 0) {
    ASSIGN_OR_RETURN(std::shared_ptr<Buffer> packet, Buffer::command(size_bytes));
    return keep(std::move(packet));
  }
  if ((flags & (XCL_BO_FLAGS_HOST_ONLY | XCL_BO_FLAGS_SVM)) != 0)
    return make_error(ErrorCode::unsupported,
                      "host_only and svm buffers: a SmartSSD's shell cannot reach host memory");
  if ((flags & XRT_BO_FLAGS_MEMIDX_MASK) != 0)
    return make_error(ErrorCode::config, "memory bank {}; a SmartSSD has bank 0 alone",
                      flags & XRT_BO_FLAGS_MEMIDX_MASK);
  if (faults_.strikes(FaultKind::allocation))
    return make_error(ErrorCode::memory, "{} bytes on {}: out of memory, as was asked for",
                      size_bytes, bdf_text(index_));
  std::shared_ptr<Buffer> buffer;
  if ((flags & XCL_BO_FLAGS_P2P) != 0) {
    const P2pReach reach =
        faults_.strikes(FaultKind::unreachable_p2p) ? P2pReach::first_half : P2pReach::whole;
    ASSIGN_OR_RETURN(buffer, Buffer::p2p(memory_, size_bytes, reach));
  } else if ((flags & XCL_BO_FLAGS_DEV_ONLY) != 0) {
    ASSIGN_OR_RETURN(buffer, Buffer::device_only(memory_, size_bytes));
  } else {
    ASSIGN_OR_RETURN(buffer, Buffer::mirrored(memory_, size_bytes, host));
  }
  return keep(std::move(buffer));
}

void SoftDevice::free(BufferHandle handle) {
  std::shared_ptr<Buffer> last;  // its memory goes back without the lock
  MutexLock lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end()) return;
  last = std::move(found->second);
  buffers_.erase(found);
}

Result<std::shared_ptr<Buffer>> SoftDevice::buffer(BufferHandle handle) const {
  MutexLock lock(mutex_);
  const auto found = buffers_.find(handle);
  if (found == buffers_.end())
    return make_error(ErrorCode::config, "device {} has no buffer {}", bdf_text(index_), handle);
  return found->second;
}

Status SoftDevice::sync(BufferHandle handle, SyncTo to, std::uint64_t count_bytes,
                        std::uint64_t offset_bytes) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> buffer, this->buffer(handle));
  if (!buffer->has_range(offset_bytes, count_bytes))
    return make_error(ErrorCode::config, "sync of {} bytes at {} of a buffer of {}", count_bytes,
                      offset_bytes, buffer->size_bytes());
  const auto begin = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(buffer->sync(to, offset_bytes, count_bytes));
  const auto direction =
      to == SyncTo::host ? platform::Direction::read : platform::Direction::write;
  std::this_thread::sleep_until(begin +
                                std::chrono::nanoseconds(rates_.sync_ns(direction, count_bytes)));
  return ok_status();
}

Status SoftDevice::copy(const Copy& copy) {
  RETURN_IF_ERROR(check_present());
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> to, buffer(copy.to));
  ASSIGN_OR_RETURN(const std::shared_ptr<Buffer> from, buffer(copy.from));
  if (to->memory() == nullptr || from->memory() == nullptr)
    return make_error(ErrorCode::config, "copy of a command");
  const bool fits =
      to->has_range(copy.to_offset_bytes, copy.count_bytes) &&
      from->has_range(copy.from_offset_bytes, copy.count_bytes) &&
      !(to == from && overlap(*to, copy.to_offset_bytes, copy.from_offset_bytes, copy.count_bytes));
  if (!fits)
    return make_error(ErrorCode::config, "copy of {} bytes from {} of {} to {} of {}",
                      copy.count_bytes, copy.from_offset_bytes, from->size_bytes(),
                      copy.to_offset_bytes, to->size_bytes());
  std::memcpy(to->device_bytes().data() + copy.to_offset_bytes,
              from->device_bytes().data() + copy.from_offset_bytes, copy.count_bytes);
  return ok_status();
}

Result<int> SoftDevice::export_buffer(BufferHandle handle) const {
  ASSIGN_OR_RETURN(std::shared_ptr<Buffer> buffer, this->buffer(handle));
  if (buffer->memory() == nullptr) return make_error(ErrorCode::config, "export of a command");
  const int fd = dup(buffer->memory()->fd());
  if (fd < 0) return make_error(ErrorCode::io, "dup: {}", std::strerror(errno));
  Exports& exported = exports();
  MutexLock lock(exported.mutex);
  exported.buffers[fd] = std::move(buffer);
  return fd;
}

Result<BufferHandle> SoftDevice::import_buffer(int fd) {
  RETURN_IF_ERROR(check_present());
  std::shared_ptr<Buffer> buffer;
  {
    Exports& exported = exports();
    MutexLock lock(exported.mutex);
    const auto found = exported.buffers.find(fd);
    if (found == exported.buffers.end())
      return make_error(ErrorCode::config, "file descriptor {} is no buffer of this process", fd);
    buffer = found->second;
  }
  return keep(std::move(buffer));
}

Status SoftDevice::close_export(int fd) {
  Exports& exported = exports();
  MutexLock lock(exported.mutex);
  if (exported.buffers.erase(fd) == 0)
    return make_error(ErrorCode::config, "file descriptor {} is no exported buffer", fd);
  close(fd);
  return ok_status();
}

Status SoftDevice::open_context(std::span<const std::byte> uuid, unsigned unit, UnitAccess access) {
  RETURN_IF_ERROR(check_present());
  MutexLock lock(mutex_);
  if (units_ == nullptr || !std::equal(uuid.begin(), uuid.end(), uuid_.begin(), uuid_.end()))
    return make_error(ErrorCode::config, "device {} has another xclbin", bdf_text(index_));
  const bool is_virtual = unit == ~0u;
  if (!is_virtual && unit >= static_cast<unsigned>(units_->count()))
    return make_error(ErrorCode::config, "there is no compute unit {}", unit);
  Access& held = contexts_[unit];
  const bool wants_it_alone = access == UnitAccess::exclusive;
  if (held.is_exclusive || (wants_it_alone && held.shared_count > 0))
    return make_error(ErrorCode::busy, "compute unit {} is another's", unit);
  (wants_it_alone ? held.is_exclusive = true : (++held.shared_count, true));
  return ok_status();
}

void SoftDevice::close_context(unsigned unit) {
  MutexLock lock(mutex_);
  Access& held = contexts_[unit];
  if (held.is_exclusive) {
    held.is_exclusive = false;
  } else if (held.shared_count > 0) {
    --held.shared_count;
  }
}

}  // namespace sluice::soft_smartssd
