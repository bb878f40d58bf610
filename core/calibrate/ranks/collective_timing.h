#pragma once
// How long collectives take among the ranks of this run: each that a sharded step may do, in each
// group that a scope may have (core/shard), for tensors of rising sizes. All groups of a kind do
// the same at the same time, as they do in a step, and the slowest rank counts.
//
// Thread contract: collective over all ranks; each rank's owner thread, one call.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collective/communicator.h"
#include "core/platform/cluster.h"

namespace sluice::calibrate {

struct CollectiveTimingOptions {
  std::vector<std::int64_t> sizes_bytes;  // of the whole tensor; rising, even
  double seconds_max = 60;                // about; the same on all ranks, as the sizes are
  // This rank's duration of one call, which is done. Empty: all ranks begin at a barrier, and the
  // clock says. For tests.
  std::function<Result<TimeNs>(const collective::Call&)> time_call = {};
  // Empty: the machine's. For tests.
  std::function<TimeNs()> now_ns = {};
  // The measurement under way, the share that is done and how much time is left; may be empty.
  std::function<void(std::string_view what, double share, double left_seconds)> on_progress = {};
};

// 4 KiB to 64 MiB, each four times the one before.
std::vector<std::int64_t> usual_sizes_bytes();

struct CollectiveTime {
  std::int64_t size_bytes = 0;
  double seconds = 0;  // the median of the rounds
  double low = 0;
  double high = 0;
  int round_count = 0;
};

struct CollectiveFigures {
  platform::Collective collective = platform::Collective::all_gather;
  platform::Scope group;
  std::vector<CollectiveTime> times;  // by size; at least one
};

struct RankFigures {
  platform::Scope mesh;
  std::vector<CollectiveFigures> rows;
  int skipped_count = 0;  // sizes of rows that the time did not allow; the largest
};

// The same on every rank. Errors (ErrorCode::config): one rank alone; nodes with different numbers
// of ranks. Those of the communicator.
Result<RankFigures> time_collectives(collective::Communicator& communicator,
                                     const CollectiveTimingOptions& options);

// The ranks as a mesh: element i is the rank of the run that is number i of the mesh, those of node
// 0 first.
struct RankMesh {
  platform::Scope mesh;
  std::vector<int> ranks;
};
Result<RankMesh> mesh_of(const collective::Communicator& communicator);

}  // namespace sluice::calibrate
