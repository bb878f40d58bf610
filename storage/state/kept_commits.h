#pragma once
// Commits that are kept beside the last one: a run goes back to any of them without a copy. What a
// kept commit costs is room, one slot more for each subgroup, since its slots are not written again
// before it is released. docs/state_format.md, "Kept commits".
//
//   STATE_DIR/kept/step-000012-8d1f3c2a9b4e5f60.slc     the commit: a log with one record
//   STATE_DIR/kept/step-000012-8d1f3c2a9b4e5f60.txt     who keeps it, as text
//
// Thread contract: plain data; kept_commits() is a free function, and may run beside a live run.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/state/commit_record.h"

namespace sluice::state {

// Two runs that went on from one step in different ways have commits of one step and different
// versions.
struct CommitId {
  std::int64_t step = 0;
  std::string version;  // 16 hex digits: XXH3-64 of step, optimizer_step and the arrays' checksums
  friend bool operator==(const CommitId&, const CommitId&) = default;
};
CommitId id_of(const CommitRecord& record, std::int64_t variable_count);

struct KeptCommit {
  CommitId id;
  std::string keeper;  // a path, or what its owner calls itself; may be empty
};

// By step. A folder without a state has none. Errors: ErrorCode::io; names alone are read.
Result<std::vector<KeptCommit>> kept_commits(const std::string& state_directory);

// The file of a kept commit, with another ending: what else belongs to it lies there and goes with
// it.
std::string path_beside_kept(const std::string& state_directory, const CommitId& id,
                             const std::string& ending);

}  // namespace sluice::state
