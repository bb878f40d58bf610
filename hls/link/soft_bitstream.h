#pragma once
// A software xclbin's substitute for a bitstream: a shared object that exports
// `sluice_soft_kernels()`. soft/smartssd/compute_unit.h makes its table from the top functions;
// here is the table's C form, and how the object is loaded from memory.
//
// Thread contract: a SoftBitstream may be used by any thread; two of the same bytes share nothing,
// as two devices do not.
// Errors: corrupt if the bytes are no shared object, or not one of this version.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "hls/link/xclbin.h"

extern "C" {

struct SluiceSoftArgument {
  const char* name;
  const char* type;
  std::uint32_t offset_bytes;  // in the unit's registers
  std::uint32_t size_bytes;
  std::uint32_t is_buffer;
};

// Device memory as a compute unit reaches it: null for an address in no live buffer.
struct SluiceSoftMemory {
  void* device;
  void* (*at)(void* device, std::uint64_t address);
};

struct SluiceSoftKernel {
  const char* name;
  std::int32_t instance_count;
  std::int32_t argument_count;
  const SluiceSoftArgument* arguments;
  // False, and nothing was run, if an argument's address is in no live buffer. `registers` reach to
  // the last argument's end. A buffer that was never set (address 0) is a null pointer.
  bool (*run)(const std::uint32_t* registers, const SluiceSoftMemory* memory);
};

struct SluiceSoftKernels {
  std::uint32_t version;
  std::int32_t count;
  const SluiceSoftKernel* kernels;
};
}

namespace sluice::hls_link {

inline constexpr std::uint32_t kSoftKernelsVersion = 1;
inline constexpr const char* kSoftKernelsSymbol = "sluice_soft_kernels";

class SoftBitstream {
 public:
  // `name` is for messages.
  static Result<SoftBitstream> open(std::span<const std::byte> shared_object,
                                    std::string_view name);

  std::span<const SluiceSoftKernel> kernels() const { return kernels_; }
  const SluiceSoftKernel* kernel_named(std::string_view name) const;  // null: there is none

 private:
  explicit SoftBitstream(std::shared_ptr<void> library) : library_(std::move(library)) {}

  std::shared_ptr<void> library_;  // the kernels' code; unloaded with the last copy
  std::span<const SluiceSoftKernel> kernels_;
};

// For the xclbin's other sections.
std::vector<Kernel> kernels_of(const SoftBitstream& bitstream);

}  // namespace sluice::hls_link
