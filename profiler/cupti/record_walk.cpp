#include "profiler/cupti/record_walk.h"

#include <cstring>

#include "profiler/cupti/activity_structs.h"

namespace sluice::cupti {
namespace {

// CUPTI aligns and pads its records to this (ACTIVITY_RECORD_ALIGNMENT).
constexpr std::size_t kRecordAlignment = 8;
constexpr std::size_t kRecordBytesMax = 4096;

struct Known {
  CUpti_ActivityKind kind;
  std::size_t struct_bytes;
  const char* name;
};

constexpr Known kKnown[] = {
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(KernelActivity), "CONCURRENT_KERNEL"},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(MemcpyActivity), "MEMCPY"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(PeerMemcpyActivity), "MEMCPY2"},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(MemsetActivity), "MEMSET"},
    {CUPTI_ACTIVITY_KIND_MEMORY, sizeof(AllocationActivity), "MEMORY"},
    {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(MemoryActivity), "MEMORY2"},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(OverheadActivity), "OVERHEAD"},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(ExternalCorrelationActivity),
     "EXTERNAL_CORRELATION"},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(SynchronizationActivity), "SYNCHRONIZATION"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(ApiActivity), "RUNTIME"},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(ApiActivity), "DRIVER"},
};

}  // namespace

Result<RecordWalk> RecordWalk::create(NextRecord next_record) {
  RecordWalk walk(next_record);
  walk.probe();
  for (const Known& known : kKnown) {
    const std::size_t bytes = walk.record_bytes(known.kind);
    if (bytes >= known.struct_bytes) continue;
    return make_error(ErrorCode::unsupported,
                      "CUPTI: this libcupti writes {} records of {} bytes, this program reads {} "
                      "(API version {}): install that version, or build with this one's headers",
                      known.name, bytes, known.struct_bytes, CUPTI_API_VERSION);
  }
  return walk;
}

void RecordWalk::probe() {
  alignas(kRecordAlignment) std::array<std::uint8_t, kRecordBytesMax> scratch = {};
  for (std::uint32_t kind = 1; kind < kKindCount; ++kind) {
    std::memcpy(scratch.data(), &kind, sizeof kind);
    for (std::size_t bytes = kRecordAlignment; bytes <= scratch.size(); bytes += kRecordAlignment) {
      CUpti_Activity* record = nullptr;
      const CUptiResult result = next_record_(scratch.data(), bytes, &record);
      if (result == CUPTI_ERROR_MAX_LIMIT_REACHED) continue;
      if (result == CUPTI_SUCCESS) record_bytes_[kind] = bytes;
      break;
    }
  }
}

RecordWalk::Step RecordWalk::next(std::uint8_t* buffer, std::size_t valid_bytes, std::size_t offset,
                                  CUpti_Activity*& record) const {
  const std::size_t left = valid_bytes - offset;
  std::uint32_t kind = 0;
  if (left < kRecordAlignment) return {kind, 0, WalkEnd::truncated};
  std::memcpy(&kind, buffer + offset, sizeof kind);
  const std::size_t bytes = record_bytes(kind);
  if (bytes == 0) return {kind, 0, WalkEnd::damaged};
  if (bytes > left) return {kind, 0, WalkEnd::truncated};
  const CUptiResult result = next_record_(buffer, valid_bytes, &record);
  const bool agrees =
      result == CUPTI_SUCCESS && reinterpret_cast<std::uint8_t*>(record) == buffer + offset;
  return {kind, agrees ? bytes : 0, WalkEnd::damaged};
}

}  // namespace sluice::cupti
