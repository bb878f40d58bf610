#include "profiler/cupti/gpu_names.h"

#include <cupti.h>
#include <fmt/format.h>

#include <array>
#include <string>

#include "profiler/cupti/foreign_text.h"

namespace sluice::cupti {
namespace {

using record::kNoTrack;
using record::NameId;
using record::TrackId;

constexpr std::size_t kStreamCountMax = 1024;
constexpr const char* kTrackKind = "cuda";
constexpr const char* kCounterKind = "counter";

constexpr std::array<const char*, 11> kCopyKinds = {"of unknown kind",
                                                    "HtoD",
                                                    "DtoH",
                                                    "HtoA",
                                                    "AtoH",
                                                    "AtoA",
                                                    "AtoD",
                                                    "DtoA",
                                                    "DtoD",
                                                    "HtoH",
                                                    "PtoP"};

// Whether the host's end is pinned decides how fast a copy is, and whether it waits.
const char* host_memory_kind(std::uint8_t copy_kind, std::uint8_t from_kind, std::uint8_t to_kind) {
  std::uint8_t kind = CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN;
  if (copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD || copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA)
    kind = from_kind;
  if (copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH || copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH)
    kind = to_kind;
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return " (pageable)";
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return " (pinned)";
    case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED:
      return " (managed)";
    default:
      return "";
  }
}

const char* overhead_text(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return "driver compiles";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return "CUPTI flushes buffers";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return "CUPTI instruments";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return "CUPTI makes resources";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING:
      return "module is loaded";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING:
      return "function is loaded";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL:
      return "command buffer is full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST:
      return "CUPTI asks for a buffer";
    case CUPTI_ACTIVITY_OVERHEAD_UVM_ACTIVITY_INIT:
      return "CUPTI prepares unified memory";
    default:
      return "overhead of unknown kind";
  }
}

// The id under `key`, made by `make` where it is not there.
template <typename Map, typename Key, typename Make>
auto found_or_made(Map& map, const Key& key, Make&& make) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : map.emplace(key, make()).first->second;
}

}  // namespace

GpuNames::GpuNames(record::Recorder& recorder)
    : recorder_(recorder),
      synchronization_(recorder.add_track(kNoTrack, kTrackKind, "synchronization")),
      overhead_(recorder.add_track(kNoTrack, kTrackKind, "CUPTI overhead")),
      memset_(recorder.intern("memset")),
      unreadable_(recorder.intern("kernel whose name cannot be read")),
      // In the order of CUpti_ActivitySynchronizationType.
      synchronization_names_{
          recorder.intern("synchronization of unknown kind"), recorder.intern("wait for event"),
          recorder.intern("stream waits for event"), recorder.intern("wait for stream"),
          recorder.intern("wait for context")} {}

TrackId GpuNames::gpu(std::uint32_t gpu) {
  return found_or_made(gpus_, gpu, [&] {
    return recorder_.add_track(kNoTrack, kTrackKind, fmt::format("GPU{}", gpu));
  });
}

TrackId GpuNames::stream(std::uint32_t gpu_number, std::uint32_t context, std::uint32_t stream) {
  const std::tuple key(gpu_number, context, stream);
  const TrackId parent = gpu(gpu_number);
  if (streams_.size() >= kStreamCountMax && !streams_.contains(key)) {
    return recorder_.add_track(parent, kTrackKind, "other streams");
  }
  return found_or_made(streams_, key, [&] {
    const std::uint32_t first_context = first_contexts_.emplace(gpu_number, context).first->second;
    const std::string name = first_context == context
                                 ? fmt::format("stream {}", stream)
                                 : fmt::format("stream {} of context {}", stream, context);
    return recorder_.add_track(parent, kTrackKind, name);
  });
}

TrackId GpuNames::memory(std::uint32_t gpu_number) {
  return found_or_made(memories_, gpu_number, [&] {
    return recorder_.add_track(gpu(gpu_number), kCounterKind,
                               fmt::format("GPU{} memory", gpu_number));
  });
}

TrackId GpuNames::pinned_memory() {
  return recorder_.add_track(kNoTrack, kCounterKind, "pinned host memory");
}

bool GpuNames::try_kernel_name(const char* text, NameId& name) {
  if (const auto known = kernel_names_.find(text); known != kernel_names_.end()) {
    name = known->second;
    return name != unreadable_;
  }
  const std::optional<std::string> copied = copy_foreign_text(text);
  name = copied ? recorder_.intern(readable_kernel_name(*copied)) : unreadable_;
  kernel_names_.emplace(text, name);
  return copied.has_value();
}

NameId GpuNames::memcpy_name(std::uint8_t copy_kind, std::uint8_t from_kind, std::uint8_t to_kind) {
  return found_or_made(memcpy_names_, std::tuple(copy_kind, from_kind, to_kind), [&] {
    const char* kind = kCopyKinds[copy_kind < kCopyKinds.size() ? copy_kind : 0];
    return recorder_.intern(
        fmt::format("memcpy {}{}", kind, host_memory_kind(copy_kind, from_kind, to_kind)));
  });
}

NameId GpuNames::peer_memcpy_name(std::uint32_t from_gpu, std::uint32_t to_gpu) {
  return found_or_made(peer_names_, std::tuple(from_gpu, to_gpu), [&] {
    return recorder_.intern(fmt::format("memcpy GPU{} to GPU{}", from_gpu, to_gpu));
  });
}

NameId GpuNames::synchronization_name(std::uint32_t type) const {
  return synchronization_names_[type < std::size(synchronization_names_) ? type : 0];
}

NameId GpuNames::overhead_name(std::uint32_t kind) { return recorder_.intern(overhead_text(kind)); }

}  // namespace sluice::cupti
