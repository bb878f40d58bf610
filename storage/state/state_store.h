#pragma once
// Optimizer state on drives (D3): one file a device, copy-on-write slots, and a commit log of two
// alternating records.
//
//   STATE_DIR/lock              flock'ed while a run has the state open; a second run is refused
//   STATE_DIR/commit.slc        header + two record areas, written in turn
//   STATE_DIR/dev0/state.slc    header page, then the data area of device 0
//   STATE_DIR/dev1/state.slc    ... (dev0, dev1 may be mount points or symbolic links)
//
// A commit: fdatasync of every device file, then the record into the older area, then fdatasync of
// the log. A crash at any instant leaves the newer whole record, and with it the state of the last
// commit. Formats: docs/state_format.md. Before the record each file is compared with its name:
// what was removed or moved away takes writes as before, and nobody would find them.
//
// Thread contract: everything from one thread at a time, except write_commit(): it blocks on the
// drives, so it may run on a worker while the owner only reads the layout and committed().

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/state/checksum.h"
#include "storage/state/commit_record.h"
#include "storage/state/durability.h"
#include "storage/state/kept_commits.h"
#include "storage/state/share.h"
#include "storage/state/state_layout.h"

namespace sluice::state {

// Says what the state is of; compared on open, and the message names the first difference.
struct StateIdentity {
  std::string model_name;
  std::uint64_t model_fingerprint = 0;      // of tensor names and shapes in flat order
  std::string optimizer;                    // its name, and below those of its arrays
  std::vector<std::string> variable_names;  // as many as the geometry's variable_count
  Share share = {};                         // what of the model it is, where many ranks have parts
};

// The names of the arrays that StateReader gives, whatever the format.
std::vector<std::string> decoded_names(const StateIdentity& identity, const StoredArrays& stored);

// The versions that creation reserves: two to train with, or one to keep
// (storage/state/snapshot.h).
enum class Versions { two, one };

class StateStore {
 public:
  struct Options {
    std::string directory;
    Durability durability = Durability::every_commit;
    io::Caching caching = io::Caching::direct;  // of every file; buffered where O_DIRECT is missing
    Versions versions = Versions::two;
  };

  // Makes a new state; refuses a directory that has a committed one (ErrorCode::config), and never
  // touches a file of another state. Nothing is committed yet: the caller writes every subgroup's
  // first version into its current slot and commits. Space is reserved at once, so a drive that is
  // too small is known here. What is left of a creation that never came to its first commit is
  // removed.
  static Result<std::unique_ptr<StateStore>> create(const Options& options,
                                                    const StateIdentity& identity,
                                                    const Geometry& geometry,
                                                    const DeviceMap& device_map);
  // Opens an existing state at its last commit. Refuses foreign, cut or damaged files and other
  // versions, naming file and offset; a state that was created but never committed is
  // ErrorCode::not_found.
  static Result<std::unique_ptr<StateStore>> open(const Options& options);
  // Read-only (for `sluice state`): takes no lock, works beside a live run and on a read-only file
  // system. Beside a live run only what was committed at this moment is known; the data of it may
  // be overwritten two commits later.
  static Result<std::unique_ptr<StateStore>> open_read_only(const Options& options);
  // The last devices of a state that nobody has open leave it: `device_count` of them stay. Refused
  // (ErrorCode::config) if a subgroup lies on one that would go; ok if there are no more than that.
  // A crash at any instant leaves the state with all of them or without.
  static Status remove_devices(const Options& options, std::int32_t device_count);
  // Whether a directory holds a state, committed or not.
  static bool exists(const std::string& directory);

  virtual ~StateStore() = default;

  virtual const StateIdentity& identity() const = 0;
  virtual Layout& layout() = 0;
  virtual const CommitRecord& committed() const = 0;  // no subgroups before the first commit
  virtual const io::File& file(DeviceId device) const = 0;
  // Offset in the file of an extent of the data area.
  virtual std::int64_t file_offset(const Extent& extent) const = 0;

  // Reserves the space of slots that take_next added to a device, before they are written. Does
  // nothing where nothing was added.
  virtual Status reserve() = 0;
  // Reserves what devices need for subgroups that will move to them (take_next with the devices of
  // `device_map`), so that a drive that is too small is known before anything moves. On failure all
  // files are as they were.
  virtual Status reserve(const DeviceMap& device_map) = 0;
  // After a commit with which subgroups moved: Layout::fit(), and files of that size. A device that
  // nothing lies on any more keeps its header alone.
  virtual Status fit() = 0;

  // Makes `record` and the layout's next versions durable. `record` names for each subgroup the
  // slot that layout().next() says, or layout().current() with the checksums of the last commit
  // where none was taken. On failure nothing has changed on the drives that a later open would see,
  // and the layout still has the next versions as taken: commit again, or abandon. Two failures are
  // final, say so, and make every later commit refuse: a device whose fdatasync failed (it may have
  // lost data), and a failed record that could not be taken back.
  virtual Status write_commit(const CommitRecord& record) = 0;
  // After a write_commit(record) that succeeded, before anything else changes the layout: the next
  // versions are the current ones, and committed() is `record`.
  virtual void finish_commit(const CommitRecord& record) = 0;

  // Between two commits, with no next version taken: the last one is kept under the name of
  // `keeper`, durably, until it is released; the room for the next one is reserved before. Again:
  // it has another keeper. On failure nothing is kept that was not.
  virtual Result<CommitId> keep(const std::string& keeper) = 0;
  // Its slots may be written again, and devices give back the room that they need no longer.
  // Errors: ErrorCode::not_found where it is not kept; those of the drive, and then it is kept
  // still.
  virtual Status release(const CommitId& id) = 0;
  virtual std::vector<KeptCommit> kept() const = 0;  // by step; of a state opened read-only none

  // Whether all files are what their names lead to, with a sentence about the first that is not.
  // Asked by every write_commit; by the owner where "committed" is about to be said.
  virtual Status check_files() const = 0;
  // Both, where blocking does not matter.
  Status commit(const CommitRecord& record);
};

CommitId last_commit_of(const StateStore& store);

// The size of the file of a device that owns `subgroup_count` subgroups, two versions of each.
std::int64_t device_file_bytes(const Geometry& geometry, std::int64_t subgroup_count);

// Whether the state that was found is the one that is wanted: ErrorCode::config with the first
// difference as a sentence, or ok.
Status check_identity(const StateIdentity& wanted, const StateIdentity& found,
                      const std::string& directory);
Status check_geometry(const Geometry& wanted, const Geometry& found, const std::string& directory);

struct VerifyProgress {
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
};

struct StateDigest {
  std::string digest;  // 32 hex digits: XXH3-128 over all master_weights, then exp_avg, ... in flat
                       // order, as fp32 and without padding
};

// Reads the whole committed state with bounded memory, checks every checksum (a mismatch names
// file, offset, subgroup and variable) and returns a digest that does not depend on subgroups or
// devices. The call is of no use beside a live run, which overwrites what is read. `on_progress`
// may be null. With `damages` a mismatch goes in there as a sentence, and what follows is checked
// as well.
Result<StateDigest> digest_state(StateStore& store,
                                 void (*on_progress)(const VerifyProgress&, void*), void* context,
                                 std::vector<std::string>* damages = nullptr);

}  // namespace sluice::state
