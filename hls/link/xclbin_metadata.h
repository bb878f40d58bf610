#pragma once
// The XML of an xclbin, from which XRT knows a kernel's arguments, and the names that it shares
// with the other sections.
//
// Thread contract: free functions.

#include "hls/link/xclbin.h"

namespace sluice::hls_link {

inline constexpr std::string_view kPlatform = "sluice_software_smartssd_1";  // no vendor's

std::string unit_name(const Kernel& kernel, int instance);  // "vadd:vadd_1"; 1-based
std::uint64_t unit_address(int unit);                       // 0-based, in the order of IP_LAYOUT

std::string metadata_xml(const std::vector<Kernel>& kernels, std::uint16_t kernel_mhz);

}  // namespace sluice::hls_link
