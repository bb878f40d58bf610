#pragma once
// The files of kept commits (storage/state/kept_commits.h).
//
// Thread contract: under the state's lock, one thread at a time.

#include <string>
#include <vector>

#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_header.h"
#include "storage/state/kept_commits.h"

namespace sluice::state::detail {

struct KeptFile {
  KeptCommit kept;
  CommitRecord record;
};

// Every kept commit of the state of `log_header`. ErrorCode::corrupt: a file that is damaged, cut
// or of another state, since nobody knows then which slots it holds.
Result<std::vector<KeptFile>> read_kept_files(const StateStore::Options& options,
                                              const FileHeader& log_header);
Result<KeptFile> read_kept_file(const StateStore::Options& options, const FileHeader& log_header,
                                const CommitId& id);

// Durable, and there as a whole or not at all.
Status write_kept_file(Disk& disk, const StateStore::Options& options, const FileHeader& log_header,
                       const KeptFile& kept);
Status write_keeper(const StateStore::Options& options, const KeptCommit& kept);
// Its files go, the record first.
Status remove_kept_file(Disk& disk, const std::string& state_directory, const CommitId& id);
Status remove_all_kept(Disk& disk, const std::string& state_directory);

std::vector<SlotId> slots_of(const CommitRecord& record);

}  // namespace sluice::state::detail
