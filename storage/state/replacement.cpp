#include "storage/state/replacement.h"

#include <filesystem>

#include "storage/state/detail/disk.h"
#include "storage/state/detail/file_names.h"
#include "storage/state/detail/kept_files.h"

namespace sluice::state {
namespace {

namespace fs = std::filesystem;
using detail::device_directory;
using detail::device_path;
using detail::log_path;

constexpr const char* kFolder = "replacement";

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Status failed(const std::string& path, const char* action, const std::error_code& error) {
  return make_error(ErrorCode::io, "{}: cannot {}: {}", path, action, error.message());
}

Status remove_if_there(detail::Disk& disk, const std::string& path) {
  return exists(path) ? disk.remove(path) : ok_status();
}

// Removes a folder with nothing in it; one with something stays.
void remove_if_empty(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

// Devices' files from `first` on; there are no gaps.
Status remove_device_files(detail::Disk& disk, const std::string& directory, std::int32_t first) {
  for (DeviceId device{first}; exists(device_path(directory, device));
       device = DeviceId{index_of(device) + 1}) {
    RETURN_IF_ERROR(disk.remove(device_path(directory, device)));
    RETURN_IF_ERROR(disk.sync_directory(device_directory(directory, device)));
    remove_if_empty(device_directory(directory, device));
  }
  return ok_status();
}

std::int32_t device_count_in(const std::string& directory) {
  std::int32_t count = 0;
  while (exists(device_directory(directory, DeviceId{count}))) count += 1;
  return count;
}

// The other files beside a state (core/offload/residual_file.h, core/session/recipe_history.h).
std::string residual_path(const std::string& directory) { return directory + "/residual.slc"; }
std::string recipe_path(const std::string& directory) { return directory + "/recipe.slc"; }

// The replacement's own, or none: may be done again after a crash.
Status put_residual_in_place(detail::Disk& disk, const std::string& from, const std::string& to) {
  return exists(residual_path(from)) ? ok_status() : remove_if_there(disk, residual_path(to));
}

}  // namespace

std::string replacement_of(const std::string& directory) { return directory + "/" + kFolder; }

Status prepare_replacement(const StateStore::Options& options, std::int32_t device_count) {
  RETURN_IF_ERROR(drop_replacement(options));
  detail::Disk disk(options.durability);
  const std::string folder = replacement_of(options.directory);
  RETURN_IF_ERROR(disk.make_directory(folder));
  for (std::int32_t d = 0; d < device_count; ++d) {
    const std::string own = device_directory(options.directory, DeviceId{d});
    RETURN_IF_ERROR(disk.make_directory(replacement_of(own)));
    std::error_code error;
    fs::create_directory_symlink(fs::absolute(replacement_of(own)),
                                 device_directory(folder, DeviceId{d}), error);
    if (error) return failed(folder, "make a link in it", error);
  }
  return disk.sync_directory(folder);
}

// One file under two names, until the replacement is dropped or is in place.
Status carry_residual(const StateStore::Options& from, const StateStore::Options& replacement) {
  if (!exists(residual_path(from.directory))) return ok_status();
  const std::string to = residual_path(replacement.directory);
  std::error_code error;
  fs::create_hard_link(residual_path(from.directory), to, error);
  if (error) return failed(to, "make it", error);
  return detail::Disk(replacement.durability).sync_directory(replacement.directory);
}

Status put_in_place(const StateStore::Options& options) {
  const std::string& to = options.directory;
  const std::string from = replacement_of(to);
  if (!exists(log_path(from))) return drop_replacement(options);
  detail::Disk disk(options.durability);
  const std::int32_t device_count = device_count_in(from);
  RETURN_IF_ERROR(detail::remove_all_kept(disk, to));  // they lie in files that go
  RETURN_IF_ERROR(remove_device_files(disk, to, device_count));
  RETURN_IF_ERROR(put_residual_in_place(disk, from, to));
  for (std::int32_t d = 0; d < device_count; ++d) {
    const std::string moved = device_path(from, DeviceId{d});
    if (!exists(moved)) continue;  // before a crash
    RETURN_IF_ERROR(disk.rename(moved, device_path(to, DeviceId{d})));
    RETURN_IF_ERROR(disk.sync_directory(device_directory(to, DeviceId{d})));
  }
  RETURN_IF_ERROR(disk.rename(log_path(from), log_path(to)));
  RETURN_IF_ERROR(disk.sync_directory(to));
  return drop_replacement(options);
}

Status drop_replacement(const StateStore::Options& options) {
  std::error_code error;
  const std::string folder = replacement_of(options.directory);
  for (std::int32_t d = 0; exists(device_directory(options.directory, DeviceId{d})); ++d) {
    fs::remove_all(replacement_of(device_directory(options.directory, DeviceId{d})), error);
    if (error) return failed(options.directory, "remove a replacement in it", error);
  }
  fs::remove_all(folder, error);
  return error ? failed(folder, "remove it", error) : ok_status();
}

Status remove_state(const StateStore::Options& options) {
  detail::Disk disk(options.durability);
  RETURN_IF_ERROR(drop_replacement(options));
  if (exists(log_path(options.directory))) {
    RETURN_IF_ERROR(disk.remove(log_path(options.directory)));
    RETURN_IF_ERROR(disk.sync_directory(options.directory));
  }
  RETURN_IF_ERROR(detail::remove_all_kept(disk, options.directory));
  RETURN_IF_ERROR(remove_device_files(disk, options.directory, 0));
  RETURN_IF_ERROR(remove_if_there(disk, residual_path(options.directory)));
  RETURN_IF_ERROR(remove_if_there(disk, recipe_path(options.directory)));
  RETURN_IF_ERROR(remove_if_there(disk, detail::lock_path(options.directory)));
  remove_if_empty(options.directory);
  return ok_status();
}

Status keep_note(const StateStore::Options& options, const std::string& path,
                 const std::string& text) {
  detail::Disk disk(options.durability);
  const std::string unfinished = detail::unfinished(path);
  RETURN_IF_ERROR(remove_if_there(disk, unfinished));
  {
    ASSIGN_OR_RETURN(io::File file, io::File::open(unfinished, {io::FileAccess::create_new,
                                                                io::Caching::buffered}));
    RETURN_IF_ERROR(disk.write(file, 0, std::as_bytes(std::span(text))));
    RETURN_IF_ERROR(disk.sync(file));
  }
  RETURN_IF_ERROR(disk.rename(unfinished, path));
  return disk.sync_directory(fs::path(path).parent_path().string());
}

Status drop_note(const StateStore::Options& options, const std::string& path) {
  detail::Disk disk(options.durability);
  RETURN_IF_ERROR(disk.remove(path));
  return disk.sync_directory(fs::path(path).parent_path().string());
}

}  // namespace sluice::state
