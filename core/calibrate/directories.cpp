#include "core/calibrate/directories.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/units.h"

namespace sluice::calibrate {
namespace {

// f_type of statfs(2), from linux/magic.h.
constexpr std::uint64_t kTmpfs = 0x01021994;
constexpr std::uint64_t kRamfs = 0x858458f6;

std::string file_system_name(std::uint64_t type) {
  static const std::map<std::uint64_t, std::string> kNames = {
      {kTmpfs, "tmpfs"},         {kRamfs, "ramfs"},    {0xef53, "ext4"}, {0x58465342, "xfs"},
      {0x9123683e, "btrfs"},     {0xf2f52010, "f2fs"}, {0x6969, "nfs"},  {0x2fc12fc1, "zfs"},
      {0x794c7630, "overlayfs"}, {0x65735546, "fuse"}};
  const auto found = kNames.find(type);
  return found != kNames.end() ? found->second : fmt::format("file system {:#x}", type);
}

Result<Directory> inspect(const std::string& path, std::int64_t size_bytes) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return make_error(ErrorCode::not_found, "{}: {}; name a folder on the drive to measure", path,
                      strerror(errno));
  }
  if (!S_ISDIR(info.st_mode)) {
    return make_error(ErrorCode::config, "{}: is not a folder; name a folder on the drive", path);
  }
  struct statfs volume = {};
  struct statvfs space = {};
  if (statfs(path.c_str(), &volume) != 0 || statvfs(path.c_str(), &space) != 0) {
    return make_error(ErrorCode::config, "{}: cannot ask its file system: {}", path,
                      strerror(errno));
  }
  const auto type = static_cast<std::uint64_t>(volume.f_type) & 0xffffffffU;
  if (type == kTmpfs || type == kRamfs) {
    return make_error(ErrorCode::config,
                      "{}: lies in memory ({}), there is no drive below it to measure", path,
                      file_system_name(type));
  }
  if (access(path.c_str(), W_OK | X_OK) != 0) {
    return make_error(ErrorCode::config, "{}: no test file can be written there: {}", path,
                      strerror(errno));
  }
  const auto block_bytes = static_cast<std::int64_t>(space.f_frsize);
  const std::int64_t free_bytes = static_cast<std::int64_t>(space.f_bavail) * block_bytes;
  if (free_bytes < size_bytes) {
    return make_error(ErrorCode::config,
                      "{}: has {} free and the test file takes {}: make room, or ask for a smaller "
                      "one with --size (what a drive gives from its cache then counts for more)",
                      path, format_bytes(free_bytes), format_bytes(size_bytes));
  }
  return Directory{path, file_system_name(type),
                   static_cast<std::int64_t>(space.f_blocks) * block_bytes,
                   static_cast<std::uint64_t>(info.st_dev)};
}

}  // namespace

Result<std::vector<Directory>> check_directories(std::span<const std::string> paths,
                                                 std::int64_t size_bytes) {
  std::vector<Directory> directories;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    ASSIGN_OR_RETURN(Directory directory, inspect(paths[i], size_bytes));
    for (std::size_t j = 0; j < i; ++j) {
      std::error_code error;
      if (!std::filesystem::equivalent(paths[i], paths[j], error)) continue;
      return make_error(ErrorCode::config, "{} and {} are the same folder; name each device once",
                        paths[j], paths[i]);
    }
    directories.push_back(std::move(directory));
  }
  // Each fits alone; those of one file system must fit together.
  for (const Directory& directory : directories) {
    const auto count = std::ranges::count(directories, directory.volume, &Directory::volume);
    if (count == 1) continue;
    const auto checked = inspect(directory.path, size_bytes * count);
    if (!checked.ok()) return checked.error();
  }
  return directories;
}

std::vector<std::string> shared_volumes(std::span<const Directory> directories) {
  std::vector<std::string> sentences;
  for (std::size_t i = 1; i < directories.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (directories[i].volume != directories[j].volume) continue;
      sentences.push_back(
          fmt::format("{} and {} lie on one file system: they share what its drive gives",
                      directories[j].path, directories[i].path));
      break;
    }
  }
  return sentences;
}

}  // namespace sluice::calibrate
