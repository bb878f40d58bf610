#pragma once
// The tracks and names that GPU activity is recorded under. Each is made when it first appears and
// then looked up without the recorder's lock.
//
//     GPU0                 kind "cuda"
//     ├─ stream 7          kind "cuda": kernels, copies and sets, in the order of the stream
//     └─ GPU0 memory       kind "counter": bytes allocated since the recording began
//     synchronization      kind "cuda": threads of the host that waited for the GPU
//     CUPTI overhead       kind "cuda": what tracing, and loading of kernels, cost
//     pinned host memory   kind "counter"
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>

#include "profiler/record/recorder.h"

namespace sluice::cupti {

// A greater number is damage: no machine has as many, and each would become a track.
inline constexpr std::uint32_t kGpuCountMax = 1024;

class GpuNames {
 public:
  explicit GpuNames(record::Recorder& recorder);

  // Streams have their numbers from their context. A second context of a GPU, which is rare, is
  // named with the stream. Past 1024 streams all others share a track.
  record::TrackId stream(std::uint32_t gpu, std::uint32_t context, std::uint32_t stream);
  record::TrackId memory(std::uint32_t gpu);
  record::TrackId pinned_memory();
  record::TrackId synchronization() const { return synchronization_; }
  record::TrackId overhead() const { return overhead_; }

  // Copied when it first appears in a batch: CUPTI owns the text, and may use its memory for
  // another name later. False: it cannot be read, and the name says so.
  bool try_kernel_name(const char* text, record::NameId& name);
  void begin_batch() { kernel_names_.clear(); }

  // Kinds as in CUPTI's CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind.
  record::NameId memcpy_name(std::uint8_t copy_kind, std::uint8_t from_kind, std::uint8_t to_kind);
  record::NameId peer_memcpy_name(std::uint32_t from_gpu, std::uint32_t to_gpu);
  record::NameId memset_name() const { return memset_; }
  record::NameId synchronization_name(std::uint32_t type) const;
  record::NameId overhead_name(std::uint32_t kind);

 private:
  record::TrackId gpu(std::uint32_t gpu);

  record::Recorder& recorder_;
  const record::TrackId synchronization_;
  const record::TrackId overhead_;
  const record::NameId memset_;
  const record::NameId unreadable_;
  record::NameId synchronization_names_[5];

  std::map<std::uint32_t, record::TrackId> gpus_;
  std::map<std::uint32_t, std::uint32_t> first_contexts_;  // by GPU
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, record::TrackId> streams_;
  std::map<std::uint32_t, record::TrackId> memories_;
  std::unordered_map<const char*, record::NameId> kernel_names_;
  std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>, record::NameId> memcpy_names_;
  std::map<std::tuple<std::uint32_t, std::uint32_t>, record::NameId> peer_names_;
};

}  // namespace sluice::cupti
