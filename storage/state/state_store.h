#pragma once
// Optimizer state on drives (D3): one file a device, copy-on-write slots, and a commit log of two
// alternating records.
//
//   STATE_DIR/lock              flock'ed while a run has the state open; a second run is refused
//   STATE_DIR/commit.slc        header + two record areas, written in turn
//   STATE_DIR/dev0/state.slc    header page, then the data area of device 0 (dev0 may be a mount
//   point or a symbolic link) STATE_DIR/dev1/state.slc    ...
//
// A commit: fdatasync of every device file, then the record into the older area, then fdatasync of
// the log. A crash at any instant leaves the newer whole record, and with it the state of the last
// commit. Formats: docs/state_format.md.
//
// Thread contract: everything from one thread at a time; commit() blocks on the drives and is meant
// for a worker thread.

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/state/commit_record.h"
#include "storage/state/state_layout.h"

namespace sluice::state {

// Says what the state is of; compared on open, and the message names the first difference.
struct StateIdentity {
  std::string model_name;
  std::uint64_t model_fingerprint = 0;  // of tensor names and shapes in flat order
  std::string optimizer = "adamw";
  std::vector<std::string> variable_names = {"master_weights", "exp_avg", "exp_avg_sq"};
};

enum class Durability { every_commit, never };  // never: no fdatasync (benchmarks of the rest)

class StateStore {
 public:
  struct Options {
    std::string directory;
    Durability durability = Durability::every_commit;
  };

  // Makes a new state; refuses a directory that has one. Nothing is committed yet: the caller
  // writes every subgroup's first version and commits. Space is reserved at once, so a drive that
  // is too small is known here.
  static Result<std::unique_ptr<StateStore>> create(const Options& options,
                                                    const StateIdentity& identity,
                                                    const Geometry& geometry,
                                                    const DeviceMap& device_map);
  // Opens an existing state at its last commit. Refuses foreign, cut or damaged files and other
  // versions, naming file and offset; a state that was created but never committed is
  // ErrorCode::not_found.
  static Result<std::unique_ptr<StateStore>> open(const Options& options);
  // Read-only (for `sluice state`): takes no lock, works beside a live run.
  static Result<std::unique_ptr<StateStore>> open_read_only(const Options& options);
  // Whether a directory holds a state, committed or not.
  static bool exists(const std::string& directory);

  virtual ~StateStore() = default;

  virtual const StateIdentity& identity() const = 0;
  virtual Layout& layout() = 0;
  virtual const CommitRecord& committed() const = 0;
  virtual const io::File& file(DeviceId device) const = 0;
  // Offset in the file of an extent of the data area.
  virtual std::int64_t file_offset(const Extent& extent) const = 0;

  // Makes `record` and the layout's next versions current and durable. On failure nothing has
  // changed on the drives that a later open would see, and the layout still has the next versions
  // as taken.
  virtual Status commit(const CommitRecord& record) = 0;
};

// Checks that differ between what is wanted and what is there: the first difference as a sentence,
// or ok.
Status check_identity(const StateIdentity& wanted, const StateIdentity& found,
                      const std::string& directory);

std::uint64_t checksum(std::span<const std::byte> bytes);  // XXH3-64

struct VerifyProgress {
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
};

struct StateDigest {
  std::string digest;  // 32 hex digits: XXH3-128 over all master_weights, then exp_avg, ... in flat
                       // order, without padding
};

// Reads the whole committed state with bounded memory, checks every checksum (a mismatch names
// file, offset, subgroup and variable) and returns a digest that does not depend on subgroups or
// devices. `on_progress` may be null.
Result<StateDigest> digest_state(StateStore& store,
                                 void (*on_progress)(const VerifyProgress&, void*), void* context);

}  // namespace sluice::state
