#pragma once
// The record that makes a new version of the optimizer state current. docs/state_format.md is the
// page of the bytes.
//
// Thread contract: plain data.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "storage/state/state_layout.h"

namespace sluice::state {

// Up to this many state arrays a subgroup (AdamW has 3, or 4 that are split).
inline constexpr int kMaxVariables = kMaxStoredArrays;

struct SubgroupVersion {
  SlotId slot;
  std::array<std::uint64_t, kMaxVariables>
      checksums{};  // XXH3-64 of each array's elements, without padding
  friend bool operator==(const SubgroupVersion&, const SubgroupVersion&) = default;
};

// The training position: opaque to storage but for the step. Doubles and integers are stored as
// they are.
struct TrainingPosition {
  std::int64_t step = 0;            // steps tried (what the data order and schedule follow)
  std::int64_t optimizer_step = 0;  // updates applied: steps less those skipped for overflow
  double loss_scale = 1;
  std::int64_t loss_scale_good_steps = 0;  // steps since the last overflow or growth
  std::uint64_t seed = 0;
  std::uint64_t data_position = 0;  // samples consumed
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};

struct CommitRecord {
  TrainingPosition position;
  std::vector<SubgroupVersion> subgroups;
  friend bool operator==(const CommitRecord&, const CommitRecord&) = default;
};

}  // namespace sluice::state
