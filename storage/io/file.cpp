#include "storage/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "base/check.h"
#include "base/safe_file.h"
#include "base/units.h"
#include "storage/io/detail/error_text.h"
#include "storage/io/detail/transfer.h"

namespace sluice::io {
namespace {

int open_flags(FileAccess access) {
  switch (access) {
    case FileAccess::read_only:
      return O_RDONLY;
    case FileAccess::read_write:
      return O_RDWR;
    case FileAccess::create_new:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

const char* action(FileAccess access) {
  switch (access) {
    case FileAccess::read_only:
      return "open for reading";
    case FileAccess::read_write:
      return "open for reading and writing";
    case FileAccess::create_new:
      return "create";
  }
  return "open";
}

// O_DIRECT is switched on after opening: a file system without it would otherwise have created the
// file before it refuses.
Status set_direct(int fd, const std::string& path) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_DIRECT) == 0) return ok_status();
  if (errno != EINVAL) return detail::file_error(path, "switch on O_DIRECT", errno);
  return make_error(ErrorCode::unsupported,
                    "{}: its file system has no O_DIRECT; choose a state_dir on ext4, xfs or "
                    "another file system of a drive",
                    path);
}

// Blocking counterpart of the engines: one transfer, attempt by attempt.
Status transfer_now(const IoRequest& request) {
  RETURN_IF_ERROR(detail::check_request(request));
  detail::Transfer transfer;
  transfer.begin(request);
  for (auto next = detail::Transfer::Next::attempt; next == detail::Transfer::Next::attempt;)
    next = transfer.take_result(detail::blocking_attempt(request, transfer.next_attempt()));
  return transfer.status();
}

}  // namespace

Result<File> File::open(const std::string& path, const Options& options) {
  const auto failed = [&](int error_number) {
    if (error_number == EEXIST)
      return make_error(ErrorCode::io,
                        "{}: is there already; remove it or choose another state_dir", path);
    return detail::file_error(path, action(options.access), error_number);
  };
  const FileTrust trust =
      options.access == FileAccess::read_only ? FileTrust::given : FileTrust::own;
  ASSIGN_OR_RETURN(const int fd,
                   open_regular_file(path, open_flags(options.access), trust, failed));
  File file(fd, path, options.caching);
  Status usable = ok_status();
  if (options.caching == Caching::direct) usable = set_direct(fd, path);
  if (!usable.ok()) {
    if (options.access == FileAccess::create_new) ::unlink(path.c_str());  // O_EXCL: it is ours
    return std::move(usable).error();
  }
  return file;
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)), caching_(other.caching_) {}

File& File::operator=(File&& other) noexcept {
  File taken(std::move(other));
  std::swap(fd_, taken.fd_);
  std::swap(path_, taken.path_);
  std::swap(caching_, taken.caching_);
  return *this;
}

// Nothing that matters can be lost here: what must be on the drive went through sync_data().
File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::int64_t> File::size_bytes() const {
  struct stat info = {};
  if (fstat(fd_, &info) != 0) return detail::file_error(path_, "ask for its size", errno);
  return static_cast<std::int64_t>(info.st_size);
}

Status File::allocate(std::int64_t size_bytes) const {
  CHECK_GT(size_bytes, 0);
  ASSIGN_OR_RETURN(const std::int64_t old_bytes, this->size_bytes());
  int failure = 0;
  do {
    failure = fallocate(fd_, 0, 0, size_bytes) == 0 ? 0 : errno;
  } while (failure == EINTR);
  if (failure == 0 && ftruncate(fd_, size_bytes) != 0) failure = errno;
  if (failure == 0) return ok_status();

  // ext4 keeps what it could reserve before it ran out; give that back.
  const bool restored = ftruncate(fd_, old_bytes) == 0;
  struct statvfs volume = {};
  const bool known = fstatvfs(fd_, &volume) == 0;
  const auto free_bytes = static_cast<std::int64_t>(volume.f_bavail * volume.f_frsize);
  return make_error(
      detail::errno_code(failure), "{}: cannot reserve {} ({} bytes): {}; {} free{}{}", path_,
      format_bytes(size_bytes), size_bytes, detail::errno_text(failure),
      known ? format_bytes(free_bytes) : std::string("unknown"), detail::errno_advice(failure),
      restored ? "" : "; the file could not be set back to the size it had");
}

std::string File::why_name_is_lost() const { return sluice::why_name_is_lost(fd_, path_); }

Status File::sync_data() const {
  while (fdatasync(fd_) != 0) {
    if (errno != EINTR)
      return detail::file_error(path_, "make its data durable (fdatasync)", errno);
  }
  return ok_status();
}

Status File::read_exactly(std::int64_t offset_bytes, std::span<std::byte> into) const {
  return transfer_now({.file = this, .offset_bytes = offset_bytes, .data = into});
}

Status File::write_exactly(std::int64_t offset_bytes, std::span<const std::byte> from) const {
  // A request has one kind of span; a write only reads from it.
  const std::span<std::byte> data(const_cast<std::byte*>(from.data()), from.size());
  return transfer_now(
      {.file = this, .offset_bytes = offset_bytes, .data = data, .direction = IoDirection::write});
}

}  // namespace sluice::io
