#include "tests/profiler/cupti/made_activities.h"

#include <cstring>
#include <iostream>
#include <map>

#include "profiler/cupti/cupti_api.h"

namespace sluice::cupti {
namespace {

std::size_t plain_record_bytes(std::uint32_t kind) {
  static const std::map<std::uint32_t, std::size_t> sizes = {
      {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(KernelActivity)},
      {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(MemcpyActivity)},
      {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(PeerMemcpyActivity)},
      {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(MemsetActivity)},
      {CUPTI_ACTIVITY_KIND_MEMORY, sizeof(AllocationActivity)},
      {CUPTI_ACTIVITY_KIND_MEMORY2, sizeof(MemoryActivity)},
      {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(OverheadActivity)},
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(ExternalCorrelationActivity)},
      {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(SynchronizationActivity)},
      {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(ApiActivity)},
      {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(ApiActivity)},
      {CUPTI_ACTIVITY_KIND_NAME, sizeof(CUpti_ActivityName)},
  };
  const auto found = sizes.find(kind);
  return found == sizes.end() ? 0 : found->second;
}

// The members that all records with a begin and an end share.
template <typename Activity>
Activity with_times(CUpti_ActivityKind kind, const MadeWork& work) {
  Activity activity = {};
  activity.kind = kind;
  activity.start = work.start;
  activity.end = work.end;
  activity.correlationId = work.correlation;
  return activity;
}

// The members that records of work on a stream share.
template <typename Activity>
Activity on_stream(CUpti_ActivityKind kind, const MadeWork& work) {
  auto activity = with_times<Activity>(kind, work);
  activity.deviceId = work.gpu;
  activity.contextId = work.context;
  activity.streamId = work.stream;
  return activity;
}

ExternalCorrelationActivity made_external(std::uint32_t correlation,
                                          CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  ExternalCorrelationActivity external = {};
  external.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  external.externalKind = kind;
  external.externalId = kExternalIdMark | id;
  external.correlationId = correlation;
  return external;
}

}  // namespace

NextRecord iterator_at_hand() {
  static const NextRecord iterator = []() -> NextRecord {
    const auto api = CuptiApi::load("");
    std::cout << "activity records are walked by "
              << (api.ok() ? "libcupti's own iterator\n" : "a plain iterator: no libcupti here\n");
    return api.ok() ? api->next_record : &plain_next_record;
  }();
  return iterator;
}

CUptiResult plain_next_record(std::uint8_t* buffer, std::size_t valid_bytes,
                              CUpti_Activity** record) {
  if (buffer == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  std::size_t offset = 0;
  if (*record != nullptr) {
    std::uint32_t kind;
    std::memcpy(&kind, *record, sizeof kind);
    offset = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(*record) - buffer) +
             plain_record_bytes(kind);
  }
  std::uint32_t kind;
  if (offset + sizeof kind > valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  std::memcpy(&kind, buffer + offset, sizeof kind);
  if (plain_record_bytes(kind) == 0) return CUPTI_ERROR_INVALID_KIND;
  if (offset + plain_record_bytes(kind) > valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + offset);
  return CUPTI_SUCCESS;
}

KernelActivity made_kernel(const MadeWork& work) {
  auto kernel = on_stream<KernelActivity>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, work);
  kernel.name = work.name;
  return kernel;
}

MemcpyActivity made_memcpy(const MadeWork& work, CUpti_ActivityMemcpyKind kind,
                           CUpti_ActivityMemoryKind from, CUpti_ActivityMemoryKind to) {
  auto copy = on_stream<MemcpyActivity>(CUPTI_ACTIVITY_KIND_MEMCPY, work);
  copy.bytes = work.bytes;
  copy.copyKind = static_cast<std::uint8_t>(kind);
  copy.srcKind = static_cast<std::uint8_t>(from);
  copy.dstKind = static_cast<std::uint8_t>(to);
  return copy;
}

PeerMemcpyActivity made_peer_memcpy(const MadeWork& work, std::uint32_t from_gpu,
                                    std::uint32_t to_gpu) {
  auto copy = on_stream<PeerMemcpyActivity>(CUPTI_ACTIVITY_KIND_MEMCPY2, work);
  copy.bytes = work.bytes;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  copy.srcDeviceId = from_gpu;
  copy.dstDeviceId = to_gpu;
  return copy;
}

MemsetActivity made_memset(const MadeWork& work) {
  auto set = on_stream<MemsetActivity>(CUPTI_ACTIVITY_KIND_MEMSET, work);
  set.bytes = work.bytes;
  return set;
}

AllocationActivity made_allocation(const MadeWork& work, CUpti_ActivityMemoryKind kind) {
  AllocationActivity allocation = {};
  allocation.kind = CUPTI_ACTIVITY_KIND_MEMORY;
  allocation.memoryKind = kind;
  allocation.bytes = work.bytes;
  allocation.start = work.start;
  allocation.end = work.end;
  allocation.deviceId = work.gpu;
  return allocation;
}

MemoryActivity made_memory(const MadeWork& work, CUpti_ActivityMemoryKind kind,
                           CUpti_ActivityMemoryOperationType operation) {
  MemoryActivity memory = {};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = operation;
  memory.memoryKind = kind;
  memory.bytes = work.bytes;
  memory.timestamp = work.start;
  memory.deviceId = work.gpu;
  return memory;
}

OverheadActivity made_overhead(const MadeWork& work, CUpti_ActivityOverheadKind kind) {
  auto overhead = with_times<OverheadActivity>(CUPTI_ACTIVITY_KIND_OVERHEAD, work);
  overhead.overheadKind = kind;
  return overhead;
}

SynchronizationActivity made_synchronization(const MadeWork& work,
                                             CUpti_ActivitySynchronizationType type) {
  auto synchronization =
      with_times<SynchronizationActivity>(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, work);
  synchronization.type = type;
  return synchronization;
}

ApiActivity made_call(const MadeWork& work, CUpti_ActivityKind kind) {
  return with_times<ApiActivity>(kind, work);
}

ExternalCorrelationActivity made_step(std::uint32_t correlation, std::uint64_t step) {
  return made_external(correlation, kStepCorrelation, step);
}

ExternalCorrelationActivity made_layer(std::uint32_t correlation, std::uint64_t layer) {
  return made_external(correlation, kLayerCorrelation, layer);
}

MadeBuffer::Copy MadeBuffer::copy(std::size_t size) const {
  // new gives memory that is aligned for any record.
  Copy copy{std::unique_ptr<std::uint8_t[]>(new std::uint8_t[size]), size};
  if (size > 0) std::memcpy(copy.data.get(), bytes_.data(), size);
  return copy;
}

}  // namespace sluice::cupti
