#pragma once
// The parts of NVTX 3 that a tool meets: how a program's copy of NVTX asks for one, and what it
// calls then. NVIDIA's own headers of NVTX 3 (nvtxTypes, nvToolsExt; those of CUDA 13.0 were read)
// have them, and are not needed to build this.
//
// Thread contract: plain data.

#include <cstddef>
#include <cstdint>

namespace sluice::inject::nvtx {

using Domain = const void*;            // nvtxDomainHandle_t
using RegisteredString = const void*;  // nvtxStringHandle_t
using RangeId = std::uint64_t;         // nvtxRangeId_t

// nvtxEventAttributes_v2.
struct EventAttributes {
  std::uint16_t version;
  std::uint16_t size;
  std::uint32_t category;
  std::int32_t colour_type;
  std::uint32_t colour;
  std::int32_t payload_type;
  std::int32_t reserved;
  std::uint64_t payload;
  std::int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* unicode;
    RegisteredString registered;
  } message;
};
static_assert(offsetof(EventAttributes, message) == 40 && sizeof(EventAttributes) == 48);

// nvtxMessageType_t.
enum : std::int32_t { kMessageAscii = 1, kMessageUnicode = 2, kMessageRegistered = 3 };

// NvtxCallbackModule.
enum class Module : std::int32_t { core = 1, core2 = 5 };
// NvtxCallbackIdCore.
enum class Core : unsigned {
  range_start_ex = 4,
  range_start_ascii = 5,
  range_start_unicode = 6,
  range_end = 7,
  range_push_ex = 8,
  range_push_ascii = 9,
  range_push_unicode = 10,
  range_pop = 11
};
// NvtxCallbackIdCore2.
enum class Core2 : unsigned {
  range_start_ex = 2,
  range_end = 3,
  range_push_ex = 4,
  range_pop = 5,
  register_string_ascii = 10,
  register_string_unicode = 11,
  create_ascii = 12,
  create_unicode = 13
};

using Function = void (*)();
// NvtxExportTableCallbacks, which get_export_table() gives for kCallbacks.
struct Callbacks {
  std::size_t struct_size;
  // Where each function's address is to be written, by the function's number.
  int (*get_functions)(Module module, Function*** functions, unsigned* count);
};
inline constexpr std::uint32_t kCallbacks = 1;
using GetExportTable = const void* (*)(std::uint32_t table);

}  // namespace sluice::inject::nvtx
