#include "storage/rundb/detail/writer_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/safe_file.h"

namespace sluice::rundb::detail {
namespace {

// A few rows are some pages of the database, and a frame of the log for each.
constexpr off_t kKeptBytes = 128 << 10;

Error cannot_create(const std::string& database_path, int error_number) {
  const bool has_no_folder = error_number == ENOENT;
  return make_error(has_no_folder ? ErrorCode::not_found : ErrorCode::io,
                    "{}: cannot create the run database there: {}{}", database_path,
                    std::strerror(error_number),
                    has_no_folder ? "; make the folder first" : "; check the folder");
}

// By the holder before, between our open and our lock: then this lock guards a file without a
// name, and the next one would not meet it.
bool is_removed(int descriptor) {
  struct stat locked;
  return ::fstat(descriptor, &locked) != 0 || locked.st_nlink == 0;
}

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
    ASSIGN_OR_RETURN(const int descriptor,
                     open_regular_file(path, O_RDWR | O_CREAT, FileTrust::own, [&](int error) {
                       return cannot_create(database_path, error);
                     }));
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
    if (is_removed(descriptor)) {
      ::close(descriptor);
      continue;
    }
    WriterLock lock(path, descriptor);
    const int error = ::posix_fallocate(descriptor, 0, kKeptBytes);
    if (error == 0) return lock;
    return make_error(error == ENOSPC ? ErrorCode::no_space : ErrorCode::io,
                      "{}: cannot create the run database there: {}{}", database_path,
                      std::strerror(error), file_limit_advice(error));
  }
}

void WriterLock::release_space() {
  // The write that needs the space may fail without it, and says so then.
  if (::ftruncate(descriptor_, 0) != 0) return;
}

}  // namespace sluice::rundb::detail
