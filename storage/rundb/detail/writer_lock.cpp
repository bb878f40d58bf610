#include "storage/rundb/detail/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice::rundb::detail {
namespace {

// A few rows are some pages of the database, and a frame of the log for each.
constexpr off_t kKeptBytes = 128 << 10;

}  // namespace

WriterLock::WriterLock(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

WriterLock::WriterLock(WriterLock&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

WriterLock::~WriterLock() {
  if (descriptor_ < 0) return;
  ::unlink(path_.c_str());  // while it is held, so that nobody else's file is removed
  ::close(descriptor_);
}

Result<WriterLock> WriterLock::acquire(const std::string& database_path) {
  const std::string path = database_path + "-writer";
  while (true) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
      return make_error(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io,
                        "{}: cannot create the run database there: {}{}", database_path,
                        std::strerror(errno),
                        errno == ENOENT ? "; make the folder first" : "; check the folder");
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      ::close(descriptor);
      if (error == EINTR) continue;
      if (error == EWOULDBLOCK)
        return make_error(ErrorCode::busy,
                          "{}: another run is recording into it; wait for that run or name "
                          "another file with --db",
                          database_path);
      return make_error(ErrorCode::io, "{}: cannot lock: {}", path, std::strerror(error));
    }
    // The holder before may have removed the file between our open and our lock: then this lock
    // guards a file without a name, and the next one would not meet it.
    struct stat locked;
    if (::fstat(descriptor, &locked) != 0 || locked.st_nlink == 0) {
      ::close(descriptor);
      continue;
    }
    WriterLock lock(path, descriptor);
    const int error = ::posix_fallocate(descriptor, 0, kKeptBytes);
    if (error == 0) return lock;
    return make_error(error == ENOSPC ? ErrorCode::no_space : ErrorCode::io,
                      "{}: cannot create the run database there: {}", database_path,
                      std::strerror(error));
  }
}

void WriterLock::release_space() {
  // What it is for may fail without it, and says so then.
  if (::ftruncate(descriptor_, 0) != 0) return;
}

}  // namespace sluice::rundb::detail
