#pragma once
// libtorch's devices by our names: found, opened, capped. Its source is the one file that knows
// what is particular to a kind of device; everything else goes through libtorch's generic
// interfaces.
//
// Thread contract: one thread, before anything computes; the rest from any.

#include <c10/core/Device.h>
#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "core/model/device_name.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::model {

struct DeviceOptions {
  DeviceName name;
  std::int64_t memory_cap_bytes = 0;  // 0: all that it has
  int thread_count = 0;               // of a device that computes on the processor; 0: all
};

// A device with memory of its own, ready to be used.
struct OpenedDevice {
  at::Device device;
  std::string description;        // "SOFTWARE ACCELERATOR soft:0"
  std::int64_t memory_bytes = 0;  // that its allocator gives at most
  std::shared_ptr<io::PinnedMemory> pinned;
};

// ErrorCode::not_found where it is not to be had, with what to do. The cap holds for the rest of
// the process. Opened once.
Result<OpenedDevice> open_device(const DeviceOptions& options);

// Where the software accelerator is looked for, and whether it is there and of this build.
std::string soft_library_path();
Status find_soft_library();

// Whether kernels of the device are the processor's, and choose among its instructions.
bool computes_on_processor(at::Device device);

// Upper bound of the host memory that the device's driver and kernels take, beside libtorch's own.
std::int64_t library_bytes_of(at::Device device);

// The device memory that libtorch takes for itself: upper bounds.
struct DeviceOwnMemory {
  std::int64_t workspace_bytes = 0;  // of matrix products
  std::int64_t segment_bytes = 0;    // begun by the allocator and not filled
};
DeviceOwnMemory own_memory_of(at::Device device);

// The use of a stream.
enum class StreamRole : std::uint8_t { compute, in, out };

// A function of the CUDA runtime that libtorch has loaded, which needs no header of it; null: there
// is none.
template <typename Function>
Function* cuda_function(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

// Names for what a device that checks its users says of its streams and memory; others ignore them.
void name_stream(at::Device device, std::int64_t stream_id, const char* name);
void name_memory(at::Device device, const void* address, const std::string& name);

}  // namespace sluice::model
