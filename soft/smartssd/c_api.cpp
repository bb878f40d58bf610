// The C functions that XRT's OpenCL library looks up in a driver. They do what the C++ interface of
// the same opening does, and turn its exceptions into error codes.

#include <xrt.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <system_error>

#include "experimental/xrt-next.h"
#include "soft/smartssd/xrt_device.h"

namespace {

using sluice::soft_smartssd::OpenDevice;

xrt_core::device& core_of(xclDeviceHandle handle) {
  return *static_cast<const OpenDevice*>(handle)->core;
}

void say(const std::exception& error) { sluice::soft_smartssd::log_soft_device(error.what()); }

// The result of `call`, or `failed`.
template <typename T, typename Call>
T or_failed(T failed, Call call) {
  try {
    return call();
  } catch (const std::exception& error) {
    say(error);
    return failed;
  }
}

// 0, or a negative error number.
template <typename Call>
int or_error(Call call) {
  try {
    call();
    return 0;
  } catch (const std::system_error& error) {
    say(error);
    return -error.code().value();
  } catch (const std::bad_alloc& error) {
    say(error);
    return -ENOMEM;
  }
}

}  // namespace

extern "C" {

unsigned xclProbe() {
  const auto settings = sluice::soft_smartssd::settings_of_environment();
  return settings.ok() ? static_cast<unsigned>(settings->devices) : 0;
}
unsigned xclVersion() { return 2; }  // of the interface: "Hal2"

xclDeviceHandle xclOpen(unsigned index, const char*, xclVerbosityLevel) {
  return or_failed<xclDeviceHandle>(
      nullptr, [&] { return sluice::soft_smartssd::open_device(static_cast<int>(index)); });
}
void xclClose(xclDeviceHandle handle) { core_of(handle).close_device(); }
int xclLockDevice(xclDeviceHandle) { return 0; }
int xclUnlockDevice(xclDeviceHandle) { return 0; }

int xclLoadXclBin(xclDeviceHandle handle, const axlf* file) {
  return or_error([&] { core_of(handle).load_axlf(file); });
}
int xclOpenContext(xclDeviceHandle handle, const xuid_t xclbin, unsigned unit, bool shared) {
  return or_error([&] { core_of(handle).open_context(xclbin, unit, shared); });
}
int xclCloseContext(xclDeviceHandle handle, const xuid_t xclbin, unsigned unit) {
  return or_error([&] { core_of(handle).close_context(xclbin, unit); });
}

xclBufferHandle xclAllocBO(xclDeviceHandle handle, std::size_t size, int, unsigned flags) {
  return or_failed<xclBufferHandle>(NULLBO, [&] { return core_of(handle).alloc_bo(size, flags); });
}
xclBufferHandle xclAllocUserPtrBO(xclDeviceHandle handle, void* host, std::size_t size,
                                  unsigned flags) {
  return or_failed<xclBufferHandle>(NULLBO,
                                    [&] { return core_of(handle).alloc_bo(host, size, flags); });
}
void xclFreeBO(xclDeviceHandle handle, xclBufferHandle buffer) { core_of(handle).free_bo(buffer); }
void* xclMapBO(xclDeviceHandle handle, xclBufferHandle buffer, bool write) {
  return or_failed<void*>(nullptr, [&] { return core_of(handle).map_bo(buffer, write); });
}
int xclUnmapBO(xclDeviceHandle, xclBufferHandle, void*) { return 0; }
int xclSyncBO(xclDeviceHandle handle, xclBufferHandle buffer, xclBOSyncDirection direction,
              std::size_t size, std::size_t offset) {
  return or_error([&] { core_of(handle).sync_bo(buffer, direction, size, offset); });
}
int xclCopyBO(xclDeviceHandle handle, xclBufferHandle to, xclBufferHandle from, std::size_t size,
              std::size_t to_offset, std::size_t from_offset) {
  return or_error([&] { core_of(handle).copy_bo(to, from, size, to_offset, from_offset); });
}
std::size_t xclWriteBO(xclDeviceHandle handle, xclBufferHandle buffer, const void* from,
                       std::size_t size, std::size_t offset) {
  return static_cast<std::size_t>(or_error([&] {
    std::memcpy(static_cast<char*>(core_of(handle).map_bo(buffer, true)) + offset, from, size);
  }));
}
std::size_t xclReadBO(xclDeviceHandle handle, xclBufferHandle buffer, void* to, std::size_t size,
                      std::size_t offset) {
  return static_cast<std::size_t>(or_error([&] {
    std::memcpy(to, static_cast<char*>(core_of(handle).map_bo(buffer, false)) + offset, size);
  }));
}
xclBufferExportHandle xclExportBO(xclDeviceHandle handle, xclBufferHandle buffer) {
  return or_failed<xclBufferExportHandle>(NULLBOEXPORT,
                                          [&] { return core_of(handle).export_bo(buffer); });
}
xclBufferHandle xclImportBO(xclDeviceHandle handle, xclBufferExportHandle fd, unsigned) {
  return or_failed<xclBufferHandle>(NULLBO, [&] { return core_of(handle).import_bo(fd); });
}
int xclGetBOProperties(xclDeviceHandle handle, xclBufferHandle buffer,
                       xclBOProperties* properties) {
  return or_error([&] { core_of(handle).get_bo_properties(buffer, properties); });
}

int xclExecBuf(xclDeviceHandle handle, xclBufferHandle packet) {
  return or_error([&] { core_of(handle).exec_buf(packet); });
}
int xclExecWait(xclDeviceHandle handle, int timeout_ms) {
  return core_of(handle).exec_wait(timeout_ms);
}
int xclRegRead(xclDeviceHandle handle, std::uint32_t unit, std::uint32_t offset,
               std::uint32_t* data) {
  return or_error([&] { core_of(handle).reg_read(unit, offset, data); });
}
int xclRegWrite(xclDeviceHandle handle, std::uint32_t unit, std::uint32_t offset,
                std::uint32_t data) {
  return or_error([&] { core_of(handle).reg_write(unit, offset, data); });
}

int xclGetDeviceInfo2(xclDeviceHandle handle, xclDeviceInfo2* info) {
  *info = {};
  info->mMagic = 0x586C0C6C;
  std::strncpy(info->mName, sluice::soft_smartssd::kDeviceName, sizeof info->mName - 1);
  info->mDDRSize = static_cast<const OpenDevice*>(handle)->soft->memory_bytes();
  info->mDataAlignment = 4096;
  info->mDDRBankCount = 1;
  info->mOCLFrequency[0] = 300;
  info->mNumClocks = 1;
  return 0;
}
int xclReClock2(xclDeviceHandle, unsigned short, const unsigned short*) { return 0; }
int xclP2pEnable(xclDeviceHandle, bool enable, bool) { return enable ? 0 : -ENOTSUP; }
std::size_t xclGetDeviceTimestamp(xclDeviceHandle) {
  return static_cast<std::size_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
double xclGetDeviceClockFreqMHz(xclDeviceHandle) { return 300; }
}
