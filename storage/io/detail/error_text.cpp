#include "storage/io/detail/error_text.h"

#include <cerrno>
#include <cstring>

namespace sluice::io::detail {

std::string errno_text(int error_number) {
  const char* name = strerrorname_np(error_number);
  const char* description = strerrordesc_np(error_number);
  if (name == nullptr) return fmt::format("errno {}", error_number);
  return fmt::format("{} ({})", name, description);
}

ErrorCode errno_code(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::not_found;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return ErrorCode::no_space;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorCode::unsupported;
    case ENOMEM:
      return ErrorCode::memory;
    default:
      return ErrorCode::io;
  }
}

std::string_view errno_advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "; free space or choose another state_dir";
    case EDQUOT:
      return "; raise the quota or choose another state_dir";
    case EFBIG:
      return "; this file system or `ulimit -f` allows no bigger file: raise it or choose another "
             "state_dir";
    case EACCES:
    case EPERM:
      return "; check owner and mode, or choose another state_dir";
    case EROFS:
      return "; the file system is mounted read-only: remount it or choose another state_dir";
    case EBADF:
      return "; the file was not opened for this direction";
    case EIO:
      return "; the drive failed the operation: see `dmesg`";
    case EMFILE:
      return "; raise `ulimit -n`";
    default:
      return "";
  }
}

Error file_error(std::string_view path, std::string_view action, int error_number) {
  return make_error(errno_code(error_number), "{}: cannot {}: {}{}", path, action,
                    errno_text(error_number), errno_advice(error_number));
}

}  // namespace sluice::io::detail
