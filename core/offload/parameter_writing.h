#pragma once
// Parameters to the drive that layers read them from, a bounce buffer's worth of fp32 at a time,
// with the checksums of the pieces that they are read in.
//
// Thread contract: the schedule's thread; checksums are added to by the worker that an operation
// runs on while it is awaited.

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/parameter_span.h"
#include "core/csd/update_task.h"
#include "core/runtime/task.h"
#include "storage/state/checksum.h"

namespace sluice::csd {
class Drive;
}

namespace sluice::offload {

class HostKernels;

// The checksums of a subgroup's stretches, of bytes that come one after the other.
class StretchSums {
 public:
  explicit StretchSums(std::span<csd::ParameterStretch> stretches) : stretches_(stretches) {}

  void add(std::span<const std::byte> bytes);

 private:
  std::span<csd::ParameterStretch> stretches_;
  std::size_t at_ = 0;
  std::int64_t summed_bytes_ = 0;  // of the stretch
  state::Checksummer checksummer_;
};

// Elements that are written at once: whole pages also of 16 bits.
std::int64_t written_elements(std::int64_t bounce_bytes);

inline std::span<float> floats_of(std::span<std::byte> bounce, std::int64_t count) {
  return {reinterpret_cast<float*>(bounce.data()), static_cast<std::size_t>(count)};
}

struct ParameterWriting {
  const HostKernels& kernels;
  const csd::Drive& drive;
  SubgroupId subgroup = kNoSubgroup;  // in the record
  ParameterKind kind = ParameterKind::bf16;
  StretchSums& sums;
};
// `count` floats at the front of `bounce` become parameters, which go to the drive.
runtime::Task<Status> write_parameters(ParameterWriting writing, std::int64_t offset_bytes,
                                       std::int64_t count, std::span<std::byte> bounce);

}  // namespace sluice::offload
