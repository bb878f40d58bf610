#include "profiler/report/merged_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

namespace sluice::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = "lock";
constexpr int kAttempts = 16;

// The descriptor, locked; -1: another process has it. Whoever removes a folder holds its lock, so
// a lock that is no longer the folder's was lost to one that did.
int lock_of(const fs::path& folder) {
  const std::string path = (folder / kLock).string();
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return -1;
  struct stat held;
  struct stat named;
  const bool is_ours = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &held) == 0 &&
                       ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
                       held.st_dev == named.st_dev;
  if (is_ours) return fd;
  ::close(fd);
  return -1;
}

// The lock goes last: until then nobody else takes the folder for one that is left.
void remove_folder(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->path().filename() != kLock) fs::remove_all(entry->path(), ignored);
  }
  fs::remove_all(folder, error);
}

void remove_what_is_left(const fs::path& below) {
  std::error_code error;
  for (fs::directory_iterator entry(below, error), end; !error && entry != end;
       entry.increment(error)) {
    const int fd = lock_of(entry->path());
    if (fd < 0) continue;
    remove_folder(entry->path());
    ::close(fd);
  }
}

Error cannot(const std::string& folder, const std::string& why) {
  return Error(ErrorCode::io,
               fmt::format("{}: no folder for a merged record can be made there ({}); "
                           "XDG_CACHE_HOME names another place",
                           folder, why));
}

}  // namespace

std::string merged_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const fs::path base = cache != nullptr && *cache != '\0'
                            ? fs::path(cache)
                            : fs::path(home == nullptr ? "." : home) / ".cache";
  return (base / "sluice" / "merged").string();
}

Result<MergedFile> MergedFile::create(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot(folder, error.message());
  remove_what_is_left(folder);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string own = (fs::path(folder) / "XXXXXX").string();
    if (::mkdtemp(own.data()) == nullptr) return cannot(folder, std::strerror(errno));
    const int fd = lock_of(own);
    // Another process may take it for one that is left before it is locked.
    if (fd >= 0) return MergedFile(own, fd);
  }
  return cannot(folder, "its files cannot be locked");
}

MergedFile::MergedFile(std::string folder, int lock_fd)
    : folder_(std::move(folder)),
      path_((fs::path(folder_) / "run.db").string()),
      lock_fd_(lock_fd) {}

MergedFile::MergedFile(MergedFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      path_(std::move(other.path_)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

MergedFile::~MergedFile() {
  if (lock_fd_ < 0) return;
  remove_folder(folder_);
  ::close(lock_fd_);
}

}  // namespace sluice::report
