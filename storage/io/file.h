#pragma once
// An open file that transfers go to. Knows its path, so that every message can name it.
// Thread contract: immutable after open; may be used from any thread.

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace sluice::io {

enum class FileAccess {
  read_only,
  read_write,
  create_new
};                                        // create_new fails if the file is there
enum class Caching { direct, buffered };  // direct = O_DIRECT: page-aligned only

class File {
 public:
  struct Options {
    FileAccess access = FileAccess::read_write;
    Caching caching = Caching::direct;
  };
  // A file system that has no O_DIRECT is an error that says so; nothing falls back by itself.
  static Result<File> open(const std::string& path, const Options& options);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  Result<std::int64_t> size_bytes() const;
  // Reserves blocks for [0, size_bytes) and sets the size; ENOSPC says how much is free.
  Status allocate(std::int64_t size_bytes) const;
  Status sync_data() const;  // fdatasync

  // Blocking, whole transfers or an error; for headers, records and tests, not for the step.
  Status read_exactly(std::int64_t offset_bytes, std::span<std::byte> into) const;
  Status write_exactly(std::int64_t offset_bytes, std::span<const std::byte> from) const;

 private:
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

}  // namespace sluice::io
