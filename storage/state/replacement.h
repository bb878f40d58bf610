#pragma once
// A state that is to take the place of the one in a folder, or of none: it is made in a folder
// inside, on the same drives, and moved file by file once it is known to be wanted. Whoever does so
// keeps a note of that elsewhere, and after a crash calls put_in_place() again.
//
// Thread contract: free functions; nobody has either state open.

#include <string>

#include "storage/state/state_store.h"

namespace sluice::state {

// Where the replacement of the state in `directory` is made: its dev0, dev1, ... lie on the drives
// of the old ones.
std::string replacement_of(const std::string& directory);
Status prepare_replacement(const StateStore::Options& options, std::int32_t device_count);

// The residual of the state goes with the replacement, which is one of the same steps.
Status carry_residual(const StateStore::Options& from, const StateStore::Options& replacement);

// The replacement's files take the place of those of the state; without a replacement that has
// been committed nothing happens. May be called again after a crash at any instant.
Status put_in_place(const StateStore::Options& options);
// All files of a replacement go.
Status drop_replacement(const StateStore::Options& options);
// The state's files go, and folders that are empty then. Nothing else in the folder is touched.
Status remove_state(const StateStore::Options& options);

// A small text file that is durably there, as a whole or not at all, and durably gone.
Status keep_note(const StateStore::Options& options, const std::string& path,
                 const std::string& text);
Status drop_note(const StateStore::Options& options, const std::string& path);

}  // namespace sluice::state
