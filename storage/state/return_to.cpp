// A state goes back by one commit.

#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/state_lock.h"
#include "storage/state/state_store.h"

namespace sluice::state {

Status StateStore::return_to(const Options& options, std::int64_t step) {
  ASSIGN_OR_RETURN(const detail::StateLock lock, detail::StateLock::take(options.directory));
  ASSIGN_OR_RETURN(detail::CommitLog log,
                   detail::CommitLog::open(detail::log_path(options.directory),
                                           {io::FileAccess::read_write, options.caching}));
  detail::Disk disk(options.durability);
  return log.return_to(disk, step);
}

}  // namespace sluice::state
