#include "storage/state/detail/disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace sluice::state::detail {
namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::not_found;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::no_space;
    default:
      return ErrorCode::io;
  }
}

}  // namespace

Error system_error(const std::string& path, std::string_view action, int error_number) {
  return make_error(code_of(error_number), "{}: cannot {}: {}", path, action,
                    std::generic_category().message(error_number));
}

Status Disk::make_directory(const std::string& path) {
  const std::filesystem::path folder(path);
  std::error_code failure;
  if (std::filesystem::is_directory(folder, failure)) return ok_status();
  const std::filesystem::path parent = folder.parent_path();
  if (!parent.empty()) RETURN_IF_ERROR(make_directory(parent.string()));
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::make_directory, .path = path}));
  std::filesystem::create_directory(folder, failure);
  if (failure) return system_error(path, "make this folder", failure.value());
  return sync_directory(parent.empty() ? "." : parent.string());
}

Status Disk::allocate(const io::File& file, std::int64_t size_bytes) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::allocate, .path = file.path(), .file = &file}));
  return file.allocate(size_bytes);
}

Status Disk::write(const io::File& file, std::int64_t offset_bytes,
                   std::span<const std::byte> data) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::write,
                          .path = file.path(),
                          .file = &file,
                          .offset_bytes = offset_bytes,
                          .data = data}));
  return file.write_exactly(offset_bytes, data);
}

Status Disk::sync(const io::File& file) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::sync, .path = file.path(), .file = &file}));
  if (durability_ == Durability::never) return ok_status();
  return file.sync_data();
}

Status Disk::sync_directory(const std::string& path) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::sync_directory, .path = path}));
  if (durability_ == Durability::never) return ok_status();
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return system_error(path, "open this folder", errno);
  const int failure = fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (failure != 0) return system_error(path, "make this folder durable (fsync)", failure);
  return ok_status();
}

Status Disk::rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::rename, .path = from}));
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return system_error(from, fmt::format("rename it to {}", to), errno);
  return ok_status();
}

Status Disk::remove(const std::string& path) {
  RETURN_IF_ERROR(before({.kind = DiskCall::Kind::remove, .path = path}));
  if (::unlink(path.c_str()) != 0) return system_error(path, "remove it", errno);
  return ok_status();
}

}  // namespace sluice::state::detail
