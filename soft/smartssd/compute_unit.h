#pragma once
// A top function as a compute unit: from its type alone follow the register map that Vitis HLS
// gives an ap_ctrl_hs kernel, and the call that reads its arguments from such registers.
//
//   One line a kernel, in one file of the shared object:
//     const SluiceSoftKernel kKernels[] = {
//         SLUICE_COMPUTE_UNIT(vadd, 2, a, b, sum, count),   // two units, and the arguments' names
//     };
//     SLUICE_SOFT_KERNELS(kKernels)
//
// The map: control in 0x00 to 0x0f, the first argument at 0x10; a scalar of up to four bytes takes
// eight, one of eight bytes or an address takes twelve.
//
// Thread contract: a kernel's calls are as safe beside each other as its top function is.

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "hls/link/soft_bitstream.h"

namespace sluice::soft_smartssd {

inline constexpr std::uint32_t kFirstArgumentOffset = 0x10;

template <typename T>
constexpr const char* register_type() {
  if constexpr (std::is_pointer_v<T>) {
    return "void*";
  } else if constexpr (std::is_same_v<T, float>) {
    return "float";
  } else if constexpr (std::is_same_v<T, double>) {
    return "double";
  } else if constexpr (std::is_unsigned_v<T>) {
    return sizeof(T) == 8 ? "ulong" : "uint";
  } else {
    return sizeof(T) == 8 ? "long" : "int";
  }
}

template <std::size_t kCount>
constexpr std::array<std::uint32_t, kCount> register_offsets(
    const std::array<std::size_t, kCount>& sizes) {
  std::array<std::uint32_t, kCount> offsets{};
  std::uint32_t next = kFirstArgumentOffset;
  for (std::size_t i = 0; i < kCount; ++i) {
    offsets[i] = next;
    next += sizes[i] > 4 ? 12 : 8;
  }
  return offsets;
}

// "a, b, sum" of a macro's arguments as separate, terminated texts.
template <std::size_t kCount>
struct ArgumentNames {
  explicit ArgumentNames(std::string_view list) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      const std::string_view name = list.substr(at, comma - at);
      name.copy(texts[i].data(), texts[i].size() - 1);
      at = std::min(list.find_first_not_of(", ", comma), list.size());
    }
  }
  std::array<std::array<char, 64>, kCount> texts{};
};

constexpr std::size_t count_names(std::string_view list) {
  std::size_t count = 1;
  for (const char c : list) count += c == ',' ? 1 : 0;
  return count;
}

template <auto kFunction, typename Type = decltype(kFunction)>
class ComputeUnitOf;

template <auto kFunction, typename... Arguments>
class ComputeUnitOf<kFunction, void (*)(Arguments...)> {
 public:
  static constexpr std::size_t kCount = sizeof...(Arguments);
  static_assert(((std::is_pointer_v<Arguments> || std::is_arithmetic_v<Arguments>) && ...),
                "an argument is a pointer or a number");

  static SluiceSoftKernel described(const char* name, int instance_count, std::string_view names) {
    static const ArgumentNames<kCount> kept_names(names);
    static const std::array<SluiceSoftArgument, kCount> kept =
        arguments(kept_names, std::index_sequence_for<Arguments...>());
    return {name, instance_count, static_cast<std::int32_t>(kCount), kept.data(), &run};
  }

 private:
  static constexpr auto kOffsets = register_offsets<kCount>({sizeof(Arguments)...});

  template <std::size_t... kIndex>
  static std::array<SluiceSoftArgument, kCount> arguments(const ArgumentNames<kCount>& names,
                                                          std::index_sequence<kIndex...>) {
    return {SluiceSoftArgument{names.texts[kIndex].data(), register_type<Arguments>(),
                               kOffsets[kIndex], static_cast<std::uint32_t>(sizeof(Arguments)),
                               std::is_pointer_v<Arguments> ? 1u : 0u}...};
  }

  template <typename T>
  static T decoded(const std::uint32_t* registers, std::uint32_t offset,
                   const SluiceSoftMemory* memory, bool& is_good) {
    if constexpr (std::is_pointer_v<T>) {
      std::uint64_t address = 0;
      std::memcpy(&address, registers + offset / 4, sizeof address);
      void* const place = address == 0 ? nullptr : memory->at(memory->device, address);
      if (address != 0 && place == nullptr) is_good = false;
      return static_cast<T>(place);
    } else {
      T value;
      std::memcpy(&value, registers + offset / 4, sizeof value);
      return value;
    }
  }

  template <std::size_t... kIndex>
  static bool call(const std::uint32_t* registers, const SluiceSoftMemory* memory,
                   std::index_sequence<kIndex...>) {
    bool is_good = true;
    const std::tuple<Arguments...> values{
        decoded<Arguments>(registers, kOffsets[kIndex], memory, is_good)...};
    if (is_good) std::apply(kFunction, values);
    return is_good;
  }

  static bool run(const std::uint32_t* registers, const SluiceSoftMemory* memory) {
    return call(registers, memory, std::index_sequence_for<Arguments...>());
  }
};

}  // namespace sluice::soft_smartssd

#define SLUICE_COMPUTE_UNIT(function, instance_count, ...)                            \
  []() -> SluiceSoftKernel {                                                          \
    using Unit = ::sluice::soft_smartssd::ComputeUnitOf<&function>;                   \
    static_assert(Unit::kCount == ::sluice::soft_smartssd::count_names(#__VA_ARGS__), \
                  "name every argument of " #function);                               \
    return Unit::described(#function, instance_count, #__VA_ARGS__);                  \
  }()

#define SLUICE_SOFT_KERNELS(kernels)                                                              \
  extern "C" __attribute__((visibility("default"))) const SluiceSoftKernels*                      \
  sluice_soft_kernels() {                                                                         \
    static const SluiceSoftKernels table{::sluice::hls_link::kSoftKernelsVersion,                 \
                                         static_cast<std::int32_t>(std::size(kernels)), kernels}; \
    return &table;                                                                                \
  }
