#include "storage/state/return_to.h"

#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/kept_files.h"
#include "storage/state/detail/state_lock.h"

namespace sluice::state {
namespace {

Error not_kept(const StateStore::Options& options, const CommitId& wanted, const CommitId& last) {
  std::vector<std::string> steps;
  const auto kept = kept_commits(options.directory);
  if (kept.ok()) {
    for (const KeptCommit& commit : *kept) steps.push_back(fmt::format("{}", commit.id.step));
  }
  return make_error(ErrorCode::not_found,
                    "{}: step {} of version {} is not kept: kept are {}, and the last commit is of "
                    "step {}, version {}",
                    options.directory, wanted.step, wanted.version,
                    steps.empty() ? "none" : fmt::format("steps {}", fmt::join(steps, ", ")),
                    last.step, last.version);
}

}  // namespace

Status return_to_kept(const StateStore::Options& options, const CommitId& id) {
  ASSIGN_OR_RETURN(const detail::StateLock lock, detail::StateLock::take(options.directory));
  ASSIGN_OR_RETURN(detail::CommitLog log,
                   detail::CommitLog::open(detail::log_path(options.directory),
                                           {io::FileAccess::read_write, options.caching}));
  ASSIGN_OR_RETURN(const CommitRecord newest, log.read_newest());
  const CommitId last = id_of(newest, log.header().geometry.variable_count);
  if (last == id) return ok_status();
  const auto kept = detail::read_kept_file(options, log.header(), id);
  if (!kept.ok() && kept.error().code() == ErrorCode::not_found) {
    return not_kept(options, id, last);
  }
  RETURN_IF_ERROR(kept);
  detail::Disk disk(options.durability);
  return log.append(disk, kept->record);
}

Status return_to(const StateStore::Options& options, std::int64_t step) {
  ASSIGN_OR_RETURN(const detail::StateLock lock, detail::StateLock::take(options.directory));
  ASSIGN_OR_RETURN(detail::CommitLog log,
                   detail::CommitLog::open(detail::log_path(options.directory),
                                           {io::FileAccess::read_write, options.caching}));
  detail::Disk disk(options.durability);
  return log.return_to(disk, step);
}

}  // namespace sluice::state
