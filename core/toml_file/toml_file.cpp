#include "core/toml_file/toml_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/units.h"
#include "core/toml_file/depth.h"

namespace sluice::toml_file {
namespace {

Status check_size(std::size_t size_bytes, const std::string& path) {
  if (size_bytes <= static_cast<std::size_t>(kSizeMaxBytes)) return ok_status();
  return make_error(ErrorCode::config, "{}: is larger than {}; is it a TOML file?", path,
                    format_bytes(kSizeMaxBytes));
}

using OpenFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

// A pipe that nobody writes into is at its end at once, instead of being waited for; one that
// somebody has open, as `<(...)` of a shell, is read to its end. Null: errno says why.
OpenFile open_without_waiting(const std::string& path) {
  OpenFile none(nullptr, &std::fclose);
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return none;
  const int flags = ::fcntl(descriptor, F_GETFL);
  if (flags >= 0 && ::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK) == 0) {
    if (std::FILE* file = ::fdopen(descriptor, "rb"); file != nullptr) return {file, &std::fclose};
  }
  ::close(descriptor);
  return none;
}

bool is_pipe(std::FILE* file) {
  struct stat info = {};
  return ::fstat(::fileno(file), &info) == 0 && S_ISFIFO(info.st_mode);
}

}  // namespace

Result<std::string> read(const std::string& path, std::string_view kind) {
  const auto failed = [&](int error_number) {
    const ErrorCode code =
        error_number == ENOENT || error_number == EISDIR ? ErrorCode::not_found : ErrorCode::io;
    return make_error(code, "{}: cannot read the {}: {}", path, kind, std::strerror(error_number));
  };
  const OpenFile file = open_without_waiting(path);
  if (file == nullptr) return failed(errno);
  std::string text;
  std::array<char, 4096> block;
  while (const std::size_t size_bytes = std::fread(block.data(), 1, block.size(), file.get())) {
    text.append(block.data(), size_bytes);
    if (text.starts_with("SQLite format 3")) {
      return make_error(ErrorCode::config,
                        "{}: is a database, such as a run records, where a {} is wanted", path,
                        kind);
    }
    RETURN_IF_ERROR(check_size(text.size(), path));  // a device such as /dev/zero has no end
  }
  if (std::ferror(file.get()) != 0) return failed(errno);
  if (text.empty() && is_pipe(file.get())) {
    return make_error(ErrorCode::config,
                      "{}: is a pipe that nobody writes the {} into; name a file", path, kind);
  }
  return text;
}

Result<toml::table> parse(std::string_view toml, const std::string& path) {
  RETURN_IF_ERROR(check_size(toml.size(), path));
  RETURN_IF_ERROR(check_depth(toml, path));
  try {
    return toml::parse(toml, path);
  } catch (const toml::parse_error& error) {
    return make_error(ErrorCode::config, "{}:{}: not valid TOML: {}", path,
                      error.source().begin.line, error.description());
  }
}

}  // namespace sluice::toml_file
