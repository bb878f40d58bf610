#pragma once
// A software SmartSSD as XRT's core sees a device (xrt_abi.h), and what the C functions of a driver
// share with it.
//
// Thread contract: any thread.
// Errors: exceptions as XRT's own drivers throw them: std::bad_alloc where device memory is full,
// std::system_error for all else, with the model's message.

#include "soft/smartssd/soft_device.h"
#include "soft/smartssd/xrt_abi.h"

namespace sluice::soft_smartssd {

// One opening of a device; its address is XRT's xclDeviceHandle. It lives until close_device().
struct OpenDevice {
  std::shared_ptr<SoftDevice> soft;
  std::shared_ptr<xrt_core::device> core;
  std::uint64_t seen = 0;  // completions; of the one thread that waits
};
OpenDevice* open_device(int index);

// The file that begins at `file`, as long as its header says: XRT hands over no length.
std::span<const std::byte> file_at(const axlf* file);

inline constexpr const char* kDeviceName = "sluice_software_smartssd_1";  // no vendor's

// The device that XRT has of an opening.
std::shared_ptr<xrt_core::device> make_xrt_device(OpenDevice* handle);

}  // namespace sluice::soft_smartssd
