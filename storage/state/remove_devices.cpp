// Fewer devices: a commit log that says so takes the place of the old one in one rename, and only
// then do the files of the others go. A crash before the rename leaves the state as it was; one
// after it leaves files that nobody looks at.

#include <filesystem>

#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/create_files.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/kept_files.h"
#include "storage/state/detail/open_store.h"
#include "storage/state/detail/state_lock.h"

namespace sluice::state {
namespace {

using detail::CommitLog;
using detail::Disk;

std::int32_t count_beyond(const CommitRecord& record, std::int32_t device_count) {
  std::int32_t count = 0;
  for (const SubgroupVersion& version : record.subgroups) {
    if (index_of(version.slot.device) >= device_count) ++count;
  }
  return count;
}

Status check_kept(const StateStore::Options& options, const detail::FileHeader& header,
                  std::int32_t device_count) {
  ASSIGN_OR_RETURN(const std::vector<detail::KeptFile> kept,
                   detail::read_kept_files(options, header));
  for (const detail::KeptFile& file : kept) {
    if (count_beyond(file.record, device_count) == 0) continue;
    return make_error(ErrorCode::config,
                      "{}: the commit of step {} is kept ({}), and part of it lies on devices that "
                      "devices={} leaves out; release it first",
                      options.directory, file.kept.id.step,
                      file.kept.keeper.empty() ? "by nobody named" : file.kept.keeper,
                      device_count);
  }
  return ok_status();
}

// The same commit in a new log.
Status write_log(Disk& disk, const StateStore::Options& options, const detail::FileHeader& header,
                 const CommitRecord& record) {
  const std::string path = detail::unfinished(detail::log_path(options.directory));
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) RETURN_IF_ERROR(disk.remove(path));  // cut off
  RETURN_IF_ERROR(
      detail::make_file(disk, path, detail::log_bytes(header.geometry), header, options.caching));
  ASSIGN_OR_RETURN(CommitLog log,
                   CommitLog::open(path, {io::FileAccess::read_write, options.caching}));
  RETURN_IF_ERROR(log.append(disk, record));
  RETURN_IF_ERROR(disk.sync_directory(options.directory));
  RETURN_IF_ERROR(disk.rename(path, detail::log_path(options.directory)));
  return disk.sync_directory(options.directory);
}

}  // namespace

Status detail::remove_devices(const StateStore::Options& options, std::int32_t device_count,
                              Disk& disk) {
  ASSIGN_OR_RETURN(const StateLock lock, StateLock::take(options.directory));
  FileHeader header;
  CommitRecord record;
  {
    ASSIGN_OR_RETURN(CommitLog log, CommitLog::open(log_path(options.directory),
                                                    {io::FileAccess::read_only, options.caching}));
    ASSIGN_OR_RETURN(record, log.read_newest());
    header = log.header();
  }
  const std::int32_t before = header.geometry.device_count;
  if (device_count >= before) return ok_status();
  if (const std::int32_t count = count_beyond(record, device_count); count > 0) {
    return make_error(
        ErrorCode::config,
        "{}: {} of {} subgroups lie on the {} of {} devices that devices={} leaves out; drain {} "
        "first: a step with devices={} and a device_map that has the share 0 there",
        options.directory, count, record.subgroups.size(),
        before - device_count == 1 ? "last" : fmt::format("last {}", before - device_count), before,
        device_count, before - device_count == 1 ? "it" : "them", before);
  }
  RETURN_IF_ERROR(check_kept(options, header, device_count));
  header.geometry.device_count = device_count;
  RETURN_IF_ERROR(write_log(disk, options, header, record));
  for (std::int32_t d = device_count; d < before; ++d) {
    const std::string path = device_path(options.directory, DeviceId{d});
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) RETURN_IF_ERROR(disk.remove(path));
  }
  return ok_status();
}

Status StateStore::remove_devices(const Options& options, std::int32_t device_count) {
  detail::Disk disk(options.durability);
  return detail::remove_devices(options, device_count, disk);
}

}  // namespace sluice::state
