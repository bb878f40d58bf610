#pragma once
// One subgroup's update as a device is told to do it: where the arrays are in its memory, the
// step's constants, the checksums that what was read must have. The same function does it on the
// host's CPU (method=host) and on an emulated device (method=csd).
//
// Thread contract: run_update() on one worker; the command and what it points to live until then.

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/status.h"
#include "core/optimizer/update_rule.h"
#include "core/runtime/operation.h"
#include "storage/io/file.h"
#include "storage/state/commit_record.h"

namespace sluice::csd {

// A stretch of the subgroup's gradient as it was sent down, with its checksum (XXH3-64, without
// padding).
struct GradientChunkCheck {
  std::int64_t offset_bytes = 0;  // from the gradient's begin
  std::int64_t size_bytes = 0;
  std::uint64_t checksum = 0;
};

// Where the arrays came from, for messages about damage.
struct UpdateSource {
  const io::File* state_file = nullptr;
  std::array<std::int64_t, state::kMaxVariables> state_offset_bytes{};
  const io::File* gradient_file = nullptr;
  std::int64_t gradient_offset_bytes = 0;
};

struct UpdateCommand {
  SubgroupId subgroup = kNoSubgroup;
  optimizer::UpdateScalars scalars;
  optimizer::UpdateArrays arrays;
  bool is_sparse = false;                      // then arrays.gradient is not looked at
  std::span<const std::byte> sparse_gradient;  // docs/sparse_gradient_format.md; aligned to 64
  std::array<std::uint64_t, state::kMaxVariables> expected{};  // checksums of what was read
  std::span<const GradientChunkCheck> gradient_checks;
  UpdateSource source;
};

// The result: checksums of the new version.
using UpdatedChecksums = std::array<std::uint64_t, state::kMaxVariables>;

// Verifies, updates in place and checksums the new version, tile by tile so that each byte of
// state comes from memory once; a sparse gradient is decompressed tile by tile, too. Damage is
// ErrorCode::corrupt naming file, offset, subgroup and variable; the arrays are then worthless, and
// nothing of them may be written.
Status run_update(const UpdateCommand& command, UpdatedChecksums& updated);

// What it costs on an engine. Decompressor and updater work on successive tiles at the same time,
// so a sparse update is as slow as the slower of them.
runtime::Cost update_cost(const UpdateCommand& command, platform::EngineId id,
                          const platform::Engine& engine);

}  // namespace sluice::csd
