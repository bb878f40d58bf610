#pragma once
// Making the files of a new state so that a crash at any instant leaves either a whole state or
// something that the next creation recognizes as its own. docs/state_format.md, "How a state is
// created".
// Thread contract: under the state's lock.

#include "base/status.h"
#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_header.h"
#include "storage/state/state_layout.h"
#include "storage/state/state_store.h"

namespace sluice::state::detail {

Status create_files(Disk& disk, const StateStore::Options& options, const StateIdentity& identity,
                    const Layout& layout);

// One file of `size_bytes` with its header, durable; its folder is not.
Status make_file(Disk& disk, const std::string& path, std::int64_t size_bytes,
                 const FileHeader& header, io::Caching caching);

}  // namespace sluice::state::detail
