#pragma once
// How a kernel's C++ function becomes a compute unit of the software SmartSSD: its register map, as
// Vitis HLS lays out an s_axilite port, and a call with the arguments that the registers hold.
//
//   SLUICE_KERNEL_ARGUMENTS(vadd, "a", "b", "sum", "count");
//   const sluice::soft_device::Kernel kKernels[] = {SLUICE_KERNEL(vadd)};
//   SLUICE_KERNEL_TABLE(kKernels)
//
// in a shared object that an xclbin carries where hardware has a bitstream. The first argument is
// at 0x10; a scalar of up to 4 bytes takes 8, one of 8 bytes and a pointer take 12 (UG1399,
// "S_AXILITE Offset").
//
// Thread contract: a table is constant; a call is as safe as its kernel.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace sluice::soft_device {

// Device memory as a running kernel reaches it. A pointer is translated once, at its argument.
class MemoryPort {
 public:
  virtual ~MemoryPort() = default;
  // Where a device address lies in this process. Throws std::out_of_range outside of a live buffer.
  virtual void* translate(std::uint64_t device_address) = 0;
};

struct Argument {
  const char* name;
  bool is_pointer;
  std::uint32_t offset;      // of its registers
  std::uint32_t size_bytes;  // of its value: 8 for a pointer
};

inline constexpr std::uint32_t kFirstArgument = 0x10;
inline constexpr int kMaxArguments = 40;

struct Kernel {
  const char* name;
  const Argument* arguments;
  int argument_count;
  std::uint32_t register_bytes;
  void (*call)(const std::byte* registers, MemoryPort& memory);
};

struct KernelTable {
  std::uint32_t version;  // kTableVersion
  const Kernel* kernels;
  int count;
};
inline constexpr std::uint32_t kTableVersion = 1;
// What the shared object exports.
inline constexpr const char* kTableSymbol = "sluice_kernel_table";

template <typename T>
constexpr std::uint32_t register_step() {
  return std::is_pointer_v<T> || sizeof(T) == 8 ? 12 : 8;
}

template <typename... Ts>
struct RegisterMap {
  static constexpr std::uint32_t offset_of(std::size_t index) {
    constexpr std::uint32_t steps[] = {register_step<Ts>()...};
    std::uint32_t offset = kFirstArgument;
    for (std::size_t i = 0; i < index; ++i) offset += steps[i];
    return offset;
  }
  static constexpr std::uint32_t kEnd = offset_of(sizeof...(Ts));
};

template <typename T>
T read_argument(const std::byte* registers, std::uint32_t offset, MemoryPort& memory) {
  if constexpr (std::is_pointer_v<T>) {
    std::uint64_t address;
    std::memcpy(&address, registers + offset, 8);
    return static_cast<T>(memory.translate(address));
  } else {
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
    T value;
    std::memcpy(&value, registers + offset, sizeof value);
    return value;
  }
}

template <auto FUNCTION, typename Signature>
struct Caller;
template <auto FUNCTION, typename... Ts>
struct Caller<FUNCTION, void (*)(Ts...)> {
  static constexpr int kCount = sizeof...(Ts);
  using Map = RegisterMap<Ts...>;

  static void call(const std::byte* registers, MemoryPort& memory) {
    call_with(registers, memory, std::index_sequence_for<Ts...>());
  }
  template <std::size_t... Is>
  static void call_with(const std::byte* registers, MemoryPort& memory,
                        std::index_sequence<Is...>) {
    FUNCTION(read_argument<Ts>(registers, Map::offset_of(Is), memory)...);
  }
  // The arguments with their names.
  struct Arguments {
    Argument values[sizeof...(Ts)];
  };
  template <typename... Names>
  static constexpr Arguments named(Names... names) {
    static_assert(sizeof...(Names) == sizeof...(Ts), "each argument of the kernel has a name");
    const char* const all[] = {names...};
    Arguments arguments{};
    const bool is_pointer[] = {std::is_pointer_v<Ts>...};
    const std::uint32_t sizes[] = {
        static_cast<std::uint32_t>(std::is_pointer_v<Ts> ? 8 : sizeof(Ts))...};
    for (std::size_t i = 0; i < sizeof...(Ts); ++i)
      arguments.values[i] = {all[i], is_pointer[i], Map::offset_of(i), sizes[i]};
    return arguments;
  }
};

}  // namespace sluice::soft_device

// Declares the arguments of a kernel; SLUICE_KERNEL then puts it into a table.
#define SLUICE_KERNEL_ARGUMENTS(function, ...) \
  constexpr auto k_arguments_of_##function =   \
      ::sluice::soft_device::Caller<&function, decltype(&function)>::named(__VA_ARGS__)

#define SLUICE_KERNEL(function)                                              \
  {#function, k_arguments_of_##function.values,                              \
   ::sluice::soft_device::Caller<&function, decltype(&function)>::kCount,    \
   ::sluice::soft_device::Caller<&function, decltype(&function)>::Map::kEnd, \
   &::sluice::soft_device::Caller<&function, decltype(&function)>::call}

#define SLUICE_KERNEL_TABLE(kernels)                                                         \
  extern "C" __attribute__((visibility("default"))) const ::sluice::soft_device::KernelTable \
  sluice_kernel_table() {                                                                    \
    return {::sluice::soft_device::kTableVersion, kernels,                                   \
            static_cast<int>(sizeof(kernels) / sizeof(kernels[0]))};                         \
  }
