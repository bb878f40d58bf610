#pragma once
// An open file that transfers go to. Knows its path, so that every message can name it.
// Thread contract: immutable after open; may be used from any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/status.h"

namespace sluice::io {

// create_new: read and write, and fails if the file is there.
enum class FileAccess { read_only, read_write, create_new };
// direct = O_DIRECT: offset, length and memory of each transfer are page-aligned.
enum class Caching { direct, buffered };

class File {
 public:
  struct Options {
    FileAccess access = FileAccess::read_write;
    Caching caching = Caching::direct;
  };
  // Regular files only, and what is written to has to be of this user and under one name
  // (base/safe_file.h). A file system that has no O_DIRECT is an error that says so; nothing falls
  // back by itself.
  static Result<File> open(const std::string& path, const Options& options);

  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  Caching caching() const { return caching_; }
  Result<std::int64_t> size_bytes() const;
  // Reserves blocks for [0, size_bytes) and sets the size; ENOSPC says how much is free, and leaves
  // the file at the size it had.
  Status allocate(std::int64_t size_bytes) const;
  Status sync_data() const;              // fdatasync
  std::string why_name_is_lost() const;  // empty: the path leads to this file (base/safe_file.h)

  // Blocking, whole transfers or an error; for headers, records and tests, not for the step. On a
  // direct file offset, length and memory are page-aligned here too.
  Status read_exactly(std::int64_t offset_bytes, std::span<std::byte> into) const;
  Status write_exactly(std::int64_t offset_bytes, std::span<const std::byte> from) const;

 private:
  File(int fd, std::string path, Caching caching)
      : fd_(fd), path_(std::move(path)), caching_(caching) {}
  int fd_ = -1;
  std::string path_;
  Caching caching_ = Caching::direct;
};

}  // namespace sluice::io
