#include "base/safe_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace sluice {
namespace {

constexpr mode_t kNewFileMode = 0644;

int open_once(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags, kNewFileMode);
  } while (descriptor < 0 && errno == EINTR);  // a signal; some network file systems stop for it
  return descriptor;
}

struct Opened {
  int descriptor = -1;  // -1: errno says why
  bool is_new = false;
};

// A file made here is told from one that was there: nothing of a new file needs to be looked at,
// and a network file system may well give it to another user than this one.
Opened open_or_create(const std::string& path, int flags) {
  if ((flags & O_EXCL) != 0) return {open_once(path, flags), true};
  if ((flags & O_CREAT) == 0) return {open_once(path, flags), false};
  while (true) {
    const int there = open_once(path, flags & ~O_CREAT);
    if (there >= 0 || errno != ENOENT) return {there, false};
    const int made = open_once(path, flags | O_EXCL);
    if (made >= 0 || errno != EEXIST) return {made, true};
  }
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error not_regular(const std::string& path, mode_t mode, FileTrust trust) {
  if (trust == FileTrust::given)
    return make_error(ErrorCode::config, "{}: is {}, not a regular file; name a file", path,
                      kind_of(mode));
  return make_error(ErrorCode::io,
                    "{}: is {}, not a regular file; nothing is written through it: move it away",
                    path, kind_of(mode));
}

// Links, sockets, folders and pipes make open(2) fail with words that name none of them.
Error refusal(const std::string& path, FileTrust trust, int error_number,
              const std::function<Error(int)>& failed) {
  struct stat info = {};
  const int looked =
      trust == FileTrust::own ? ::lstat(path.c_str(), &info) : ::stat(path.c_str(), &info);
  const bool is_of_kind = error_number == ELOOP || error_number == ENXIO || error_number == EISDIR;
  if (is_of_kind && looked == 0 && !S_ISREG(info.st_mode))
    return not_regular(path, info.st_mode, trust);
  return failed(error_number);
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_owner_of_folder(uid_t user, const std::string& path) {
  struct stat folder = {};
  return ::stat(folder_of(path).c_str(), &folder) == 0 && folder.st_uid == user;
}

Status check_own(const struct stat& info, const std::string& path) {
  if (info.st_nlink > 1)
    return make_error(ErrorCode::io,
                      "{}: is a file with {} names (hard links), and writing here would change it "
                      "under the others, too; move it away, or put a copy in its place",
                      path, info.st_nlink);
  if (info.st_uid == ::geteuid() || is_owner_of_folder(info.st_uid, path)) return ok_status();
  return make_error(ErrorCode::io,
                    "{}: belongs to user {}, and this program runs as user {}; nothing is written "
                    "into files of others: move it away",
                    path, info.st_uid, ::geteuid());
}

Status check_opened(const Opened& opened, const std::string& path, FileTrust trust,
                    const std::function<Error(int)>& failed) {
  struct stat info = {};
  if (::fstat(opened.descriptor, &info) != 0) return failed(errno);
  if (!S_ISREG(info.st_mode)) return not_regular(path, info.st_mode, trust);
  if (trust == FileTrust::own && !opened.is_new) RETURN_IF_ERROR(check_own(info, path));
  // A regular file is read and written all the same, but not by io_uring, which would give up
  // wherever it had to wait.
  const int flags = ::fcntl(opened.descriptor, F_GETFL);
  if (flags < 0 || ::fcntl(opened.descriptor, F_SETFL, flags & ~O_NONBLOCK) != 0)
    return failed(errno);
  return ok_status();
}

}  // namespace

Result<int> open_regular_file(const std::string& path, int flags, FileTrust trust,
                              const std::function<Error(int error_number)>& failed) {
  CHECK(trust == FileTrust::own || (flags & O_CREAT) == 0);
  CHECK((flags & O_TRUNC) == 0);  // of what has not been looked at yet
  flags |= O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  if (trust == FileTrust::own) flags |= O_NOFOLLOW;
  const Opened opened = open_or_create(path, flags);
  if (opened.descriptor < 0) return refusal(path, trust, errno, failed);
  if (Status usable = check_opened(opened, path, trust, failed); !usable.ok()) {
    ::close(opened.descriptor);
    return std::move(usable).error();
  }
  return opened.descriptor;
}

std::string why_name_is_lost(int descriptor, const std::string& path) {
  struct stat opened = {};
  struct stat named = {};
  if (::fstat(descriptor, &opened) != 0)
    return fmt::format("it cannot be looked at ({})", std::strerror(errno));
  if (opened.st_nlink == 0) return "it was removed";
  if (::stat(path.c_str(), &named) != 0)
    return fmt::format("it was moved, or its drive was unmounted ({})", std::strerror(errno));
  if (opened.st_dev == named.st_dev && opened.st_ino == named.st_ino) return "";
  return "another file has its name: it was moved, or a drive was mounted or unmounted there";
}

std::string file_limit_advice(int error_number) {
  if (error_number != EFBIG) return "";
  return "; the file size limit (ulimit -f) or the file system allows no bigger file";
}

}  // namespace sluice
