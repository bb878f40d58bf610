#pragma once
// One subgroup's update, in three parts that go to three readers: the task is all that a kernel is
// told, the check is what the host compares, the source is for messages about damage.
//
// Thread contract: plain values; what they point to lives until the update has ended.

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/state_format.h"
#include "core/optimizer/update_rule.h"
#include "storage/io/file.h"
#include "storage/state/commit_record.h"

namespace sluice::csd {

// The arrays themselves are not here: a device is given its buffers (UpdateBuffers), the processor
// its pointers (UpdateMemory).
struct UpdateTask {
  SubgroupId subgroup = kNoSubgroup;
  optimizer::UpdateScalars scalars;
  std::int64_t element_count = 0;
  bool is_sparse = false;  // the gradient is docs/sparse_gradient_format.md
  optimizer::GradientKind gradient_kind = optimizer::GradientKind::fp32;
  Float16Kind parameter_kind = Float16Kind::bf16;  // of the copy, where one is made
  StoredArrays stored = {};
  CodeRounding rounding = {};         // of codes that lose something
  std::int64_t first_flat_index = 0;  // of the subgroup in the whole model
};

// A stretch of the subgroup's gradient as it was sent down, with its checksum (XXH3-64, without
// padding).
struct GradientChunkCheck {
  std::int64_t offset_bytes = 0;  // from the gradient's begin
  std::int64_t size_bytes = 0;
  std::uint64_t checksum = 0;
};

// A stretch of the subgroup's parameters as it will be read, with its checksum (XXH3-64).
struct ParameterStretch {
  std::int64_t offset_bytes = 0;  // from the parameters' begin
  std::int64_t size_bytes = 0;
  std::uint64_t checksum = 0;  // the update fills it in
};

struct UpdateCheck {
  std::array<std::uint64_t, state::kMaxVariables> expected{};  // checksums of what was read
  std::span<const GradientChunkCheck> gradient;
};

// Where the arrays came from.
struct UpdateSource {
  const io::File* state_file = nullptr;
  std::array<std::int64_t, state::kMaxVariables> state_offset_bytes{};
  const io::File* gradient_file = nullptr;
  std::int64_t gradient_offset_bytes = 0;
};

// Split state whose copy of the parameters is where forward reads it: what passes between that
// place and the first of the state's arrays.
struct CopyPassing {
  bool comes_from_state = false;  // the version that is updated was read into the state's array
  bool goes_to_state = false;     // from where it is written
};

struct UpdateOrder {
  UpdateTask task;
  UpdateCheck check;
  UpdateSource source;
  std::span<ParameterStretch> parameters = {};  // where they go to a drive; else empty
  CopyPassing copy = {};
  std::int32_t step = -1;  // that it is part of; -1: the one that the runtime is in
};

// The result: checksums of the new version.
using UpdatedChecksums = std::array<std::uint64_t, state::kMaxVariables>;

}  // namespace sluice::csd
