#pragma once
// Whether the XRT that is loaded is the one that xrt_abi.h describes: by its version at compile
// time and by the sizes of its vtables, which change with every virtual function that comes or
// goes.
//
// Thread contract: free functions.

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <version.h>

#include <cstddef>
#include <string>

namespace sluice::soft_smartssd {

inline constexpr std::size_t kDeviceVtableBytes = 0x248;
inline constexpr std::size_t kSystemVtableBytes = 0x70;

// The size of an exported object of the loaded libraries; 0: there is none of that name.
inline std::size_t exported_bytes(const char* symbol) {
  void* const coreutil = dlopen("libxrt_coreutil.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (coreutil == nullptr) return 0;
  void* const place = dlsym(coreutil, symbol);
  Dl_info info;
  void* entry = nullptr;
  const bool is_found =
      place != nullptr && dladdr1(place, &info, &entry, RTLD_DL_SYMENT) != 0 && entry != nullptr;
  const std::size_t bytes = is_found ? static_cast<const ElfW(Sym)*>(entry)->st_size : 0;
  dlclose(coreutil);
  return bytes;
}

// Empty: it is that XRT.
inline std::string abi_problem() {
  if (XRT_VERSION_CODE != XRT_VERSION(2, 13))
    return fmt::format("built against XRT {}; the software device knows 2.13", xrt_build_version);
  const std::size_t device = exported_bytes("_ZTVN8xrt_core6deviceE");
  const std::size_t system = exported_bytes("_ZTVN8xrt_core6systemE");
  if (device != kDeviceVtableBytes || system != kSystemVtableBytes)
    return fmt::format(
        "the vtables of XRT's device and system have {:#x} and {:#x} bytes, not "
        "{:#x} and {:#x}: another XRT than the software device knows",
        device, system, kDeviceVtableBytes, kSystemVtableBytes);
  return "";
}

}  // namespace sluice::soft_smartssd
