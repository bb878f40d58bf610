#pragma once
// Software xclbins: the container that XRT loads (axlf, `xclbin2`), holding kernels as an ELF
// shared object (soft_bitstream.h) where one of v++ holds a bitstream. What v++ links is read by
// XRT alone.
//
// Sections: BITSTREAM, EMBEDDED_METADATA (XML), IP_LAYOUT, MEM_TOPOLOGY (one bank), CONNECTIVITY,
// CLOCK_FREQ_TOPOLOGY; each begins at a multiple of eight bytes. The key block, which the format
// keeps for a signature, begins with "sluice-fnv1a-64\0" and the FNV-1a of the whole file with
// those eight bytes as zeros. No signature: it finds damage, not intent.
//
// Thread contract: free functions and plain values.
// Errors: corrupt for what was cut, is foreign or was changed, with name and byte offset; config
// for kernels that no xclbin can hold.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::hls_link {

inline constexpr std::uint64_t kBankBytes = std::uint64_t{4} << 30;  // a SmartSSD's one DDR4 bank
inline constexpr std::uint32_t kUnitRangeBytes = 64 * 1024;  // address space of one compute unit
inline constexpr int kUnitsMax = 128;                        // XRT's limit for one xclbin

struct KernelArgument {
  std::string name;
  std::string type;
  bool is_buffer = false;  // an address in device memory; else a scalar
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

struct Kernel {
  std::string name;
  int instance_count = 1;  // compute units `NAME_1`, `NAME_2`, ...
  std::vector<KernelArgument> arguments;
};

struct XclbinParts {
  std::vector<Kernel> kernels;
  std::span<const std::byte> bitstream;  // the ELF shared object
  std::uint16_t kernel_mhz = 300;
};

Result<std::vector<std::byte>> write_xclbin(const XclbinParts& parts);

struct ComputeUnit {
  std::string kernel;
  std::string instance;
  std::uint64_t base_address = 0;
};

// Views into the file that was read.
struct Xclbin {
  std::array<std::byte, 16> uuid{};
  std::string platform;
  std::uint64_t bank_bytes = 0;
  std::uint16_t kernel_mhz = 0;
  std::vector<ComputeUnit> compute_units;  // in the order of IP_LAYOUT, which numbers them
  std::string_view metadata;
  std::span<const std::byte> bitstream;
};

// `name` is the file's, for messages. Nothing outside of `file` is read.
Result<Xclbin> read_xclbin(std::span<const std::byte> file, std::string_view name);

}  // namespace sluice::hls_link
