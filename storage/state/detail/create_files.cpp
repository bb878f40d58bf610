#include "storage/state/detail/create_files.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "storage/io/page_aligned_buffer.h"
#include "storage/state/detail/bytes.h"
#include "storage/state/detail/commit_log.h"
#include "storage/state/detail/file_header.h"
#include "storage/state/detail/file_names.h"

namespace sluice::state::detail {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at will fail with its reason when it is made
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

// Header of a file that an earlier creation may have left; none if it has no whole one.
Result<std::optional<FileHeader>> header_left_at(const std::string& path, bool is_log,
                                                 io::Caching caching) {
  if (!is_there(path)) return std::optional<FileHeader>();
  ASSIGN_OR_RETURN(const io::File file, io::File::open(path, {io::FileAccess::read_only, caching}));
  Result<FileHeader> header = read_header(file, is_log);
  if (!header.ok()) return std::optional<FileHeader>();
  return std::optional<FileHeader>(std::move(*header));
}

// A .new file: ours if its beginning was never written or is ours.
Status remove_unfinished(Disk& disk, const std::string& path, io::Caching caching) {
  if (!is_there(path)) return ok_status();
  {
    ASSIGN_OR_RETURN(const io::File file,
                     io::File::open(path, {io::FileAccess::read_only, caching}));
    ASSIGN_OR_RETURN(const std::int64_t size_bytes, file.size_bytes());
    if (size_bytes >= kHeaderBytes) {
      ASSIGN_OR_RETURN(io::PageAlignedBuffer page, io::PageAlignedBuffer::allocate(kHeaderBytes));
      RETURN_IF_ERROR(file.read_exactly(0, page.bytes()));
      if (!begins_like_ours(page.bytes()))
        return make_error(
            ErrorCode::config,
            "{}: is a foreign file (no Sluice magic at offset 0) under a name that is "
            "needed; move it away or choose another state_dir",
            path);
    }
  }
  return disk.remove(path);
}

// A state.slc without a commit.slc: ours if the creation that was cut off says so.
Status remove_renamed(Disk& disk, const std::string& path, const std::optional<FileHeader>& cut_off,
                      io::Caching caching) {
  if (!is_there(path)) return ok_status();
  ASSIGN_OR_RETURN(const std::optional<FileHeader> header, header_left_at(path, false, caching));
  if (header && cut_off && header->state_id == cut_off->state_id) return disk.remove(path);
  return make_error(ErrorCode::config,
                    "{}: is there already and {}; remove it if nobody needs it, or choose another "
                    "state_dir",
                    path,
                    header ? fmt::format("belongs to the optimizer state {} of '{}', whose commit "
                                         "log is not in this folder",
                                         to_hex(header->state_id), header->identity.model_name)
                           : std::string("has no whole header of a Sluice state at offset 0"));
}

// A state that was never committed holds nothing. It is turned back into a creation that was cut
// off before its last rename, so that a crash in here leaves nothing new to know.
Status withdraw_uncommitted(Disk& disk, const StateStore::Options& options) {
  const std::string path = log_path(options.directory);
  if (!is_there(path)) return ok_status();
  {
    ASSIGN_OR_RETURN(CommitLog log,
                     CommitLog::open(path, {io::FileAccess::read_only, options.caching}));
    const Result<CommitRecord> newest = log.read_newest();
    if (newest.ok() || newest.error().code() != ErrorCode::not_found)
      return make_error(ErrorCode::config,
                        "{}: already holds an optimizer state; go on from it with --resume, choose "
                        "another folder with --set state_dir=DIR, or remove it",
                        options.directory);
  }
  return disk.rename(path, unfinished(path));
}

Status remove_leftovers(Disk& disk, const StateStore::Options& options, std::int32_t device_count) {
  const std::string log = unfinished(log_path(options.directory));
  ASSIGN_OR_RETURN(const std::optional<FileHeader> cut_off,
                   header_left_at(log, true, options.caching));
  if (cut_off) device_count = std::max(device_count, cut_off->geometry.device_count);
  for (std::int32_t d = 0; d < device_count; ++d) {
    const std::string path = device_path(options.directory, DeviceId{d});
    RETURN_IF_ERROR(remove_unfinished(disk, unfinished(path), options.caching));
    RETURN_IF_ERROR(remove_renamed(disk, path, cut_off, options.caching));
  }
  return remove_unfinished(disk, log, options.caching);  // last: it tells which files are ours
}

Status make_device_file(Disk& disk, const StateStore::Options& options, const Layout& layout,
                        FileHeader header, DeviceId device) {
  header.device = device;
  const std::string folder = device_directory(options.directory, device);
  RETURN_IF_ERROR(disk.make_directory(folder));
  // A new layout has the first versions in the lower half of the slots.
  const std::int64_t data_bytes =
      options.versions == Versions::two ? layout.data_bytes(device) : layout.data_bytes(device) / 2;
  RETURN_IF_ERROR(make_file(disk, unfinished(device_path(options.directory, device)),
                            kHeaderBytes + data_bytes, header, options.caching));
  return disk.sync_directory(folder);
}

Status rename_finished(Disk& disk, const std::string& path, const std::string& folder) {
  RETURN_IF_ERROR(disk.rename(unfinished(path), path));
  return disk.sync_directory(folder);
}

Status make_all_files(Disk& disk, const StateStore::Options& options, FileHeader header,
                      const Layout& layout) {
  const std::string& directory = options.directory;
  const std::string log = log_path(directory);
  const Geometry& geometry = layout.geometry();
  RETURN_IF_ERROR(make_file(disk, unfinished(log), log_bytes(geometry), header, options.caching));
  RETURN_IF_ERROR(disk.sync_directory(directory));
  for (std::int32_t d = 0; d < geometry.device_count; ++d)
    RETURN_IF_ERROR(make_device_file(disk, options, layout, header, DeviceId{d}));
  for (std::int32_t d = 0; d < geometry.device_count; ++d)
    RETURN_IF_ERROR(rename_finished(disk, device_path(directory, DeviceId{d}),
                                    device_directory(directory, DeviceId{d})));
  return rename_finished(disk, log, directory);
}

}  // namespace

Status make_file(Disk& disk, const std::string& path, std::int64_t size_bytes,
                 const FileHeader& header, io::Caching caching) {
  ASSIGN_OR_RETURN(const io::File file,
                   io::File::open(path, {io::FileAccess::create_new, caching}));
  RETURN_IF_ERROR(disk.allocate(file, size_bytes));
  ASSIGN_OR_RETURN(io::PageAlignedBuffer page, io::PageAlignedBuffer::allocate(kHeaderBytes));
  encode_header(header, page.bytes());
  RETURN_IF_ERROR(disk.write(file, 0, page.bytes()));
  return disk.sync(file);
}

Status create_files(Disk& disk, const StateStore::Options& options, const StateIdentity& identity,
                    const Layout& layout) {
  const std::int32_t device_count = layout.geometry().device_count;
  RETURN_IF_ERROR(withdraw_uncommitted(disk, options));
  RETURN_IF_ERROR(remove_leftovers(disk, options, device_count));
  ASSIGN_OR_RETURN(const StateId state_id, make_state_id());
  const FileHeader header{.device = kNoDevice,
                          .state_id = state_id,
                          .identity = identity,
                          .geometry = layout.geometry()};
  Status made = make_all_files(disk, options, header, layout);
  if (made.ok() || is_there(log_path(options.directory))) return made;
  // Gives reserved space back at once. What cannot be removed now, the next creation removes.
  const Status removed = remove_leftovers(disk, options, device_count);
  if (!removed.ok()) return made.error().with_context("files of the attempt are left behind");
  return made;
}

}  // namespace sluice::state::detail
