#include "core/data/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "base/safe_file.h"

namespace sluice::data {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Error system_error(const std::string& path, const char* what, int number = errno) {
  const ErrorCode code = number == ENOENT                       ? ErrorCode::not_found
                         : number == ENOSPC || number == EDQUOT ? ErrorCode::no_space
                                                                : ErrorCode::io;
  return make_error(code, "{}: {} failed: {}{}", path, what, std::strerror(number),
                    file_limit_advice(number));
}

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Status FileDescriptor::close(const std::string& path) {
  if (::close(std::exchange(fd_, -1)) != 0) return system_error(path, "closing");
  return ok_status();
}

Result<FileDescriptor> open_for_reading(const std::string& path) {
  const auto failed = [&](int number) { return system_error(path, "opening", number); };
  ASSIGN_OR_RETURN(const int descriptor,
                   open_regular_file(path, O_RDONLY, FileTrust::given, failed));
  return FileDescriptor(descriptor);
}

Result<std::int64_t> size_of(const FileDescriptor& file, const std::string& path) {
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return system_error(path, "reading its size");
  return static_cast<std::int64_t>(info.st_size);
}

Result<std::size_t> read_at(const FileDescriptor& file, std::span<std::byte> bytes,
                            std::int64_t offset, const std::string& path) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + filled, bytes.size() - filled, offset + filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "reading");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Status for_each_piece(const FileDescriptor& file, std::int64_t first, const std::string& path,
                      const std::function<void(std::span<const std::byte>)>& look,
                      const Stops& stops) {
  std::vector<std::byte> piece(kPieceBytes);
  std::int64_t offset = first;
  while (true) {
    RETURN_IF_ERROR(unless_stopped(stops, "reading " + path));
    ASSIGN_OR_RETURN(const std::size_t filled, read_at(file, piece, offset, path));
    if (filled > 0) look(std::span(piece).first(filled));
    if (filled < piece.size()) return ok_status();
    offset += static_cast<std::int64_t>(filled);
  }
}

NewFile::NewFile(std::string final_path, std::string temporary_path, FileDescriptor file)
    : final_path_(std::move(final_path)),
      temporary_path_(std::move(temporary_path)),
      file_(std::move(file)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : final_path_(std::move(other.final_path_)),
      temporary_path_(std::exchange(other.temporary_path_, std::string())),
      file_(std::move(other.file_)) {}

Result<NewFile> NewFile::create(const std::string& final_path) {
  // A name of its own: ranks, also of other machines, may make the same file at the same time.
  std::random_device chance;
  std::string temporary = fmt::format("{}.part-{:08x}{:08x}", final_path, chance(), chance());
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return system_error(temporary, "creating");
  return NewFile(final_path, std::move(temporary), std::move(file));
}

NewFile::~NewFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Status NewFile::write(std::span<const std::byte> bytes, std::int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file_.get(), bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return system_error(temporary_path_, "writing");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += put;
  }
  return ok_status();
}

Status NewFile::publish() {
  if (::fsync(file_.get()) != 0) return system_error(temporary_path_, "fsync");
  RETURN_IF_ERROR(file_.close(temporary_path_));
  if (std::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) {
    return system_error(final_path_, "renaming the finished file to this name");
  }
  temporary_path_.clear();
  return ok_status();
}

}  // namespace sluice::data
