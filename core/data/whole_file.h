#pragma once
// Reading a file from end to end in bounded memory, and writing one that appears whole or not at
// all. Plain blocking calls: this is preparation, never part of a training step.
//
// Thread contract: one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/status.h"
#include "base/stops.h"

namespace sluice::data {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();

  int get() const { return fd_; }
  Status close(const std::string& path);  // reports what a destructor cannot

 private:
  int fd_;
};

// Regular files only; a link may lead to one.
Result<FileDescriptor> open_for_reading(const std::string& path);
Result<std::int64_t> size_of(const FileDescriptor& file, const std::string& path);

// Fills `bytes` from `offset` on and says how many there were: fewer only at the end of the file.
Result<std::size_t> read_at(const FileDescriptor& file, std::span<std::byte> bytes,
                            std::int64_t offset, const std::string& path);

// Hands out everything from offset `first` on, in order; every piece but the last has the same
// even size. `stops` is asked before each: ErrorCode::cancelled.
Status for_each_piece(const FileDescriptor& file, std::int64_t first, const std::string& path,
                      const std::function<void(std::span<const std::byte>)>& look,
                      const Stops& stops = {});

// A file that is written beside its final name: write() as often as needed, then publish() makes it
// durable and renames it. Without publish() the destructor removes what was written.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& final_path);
  NewFile(NewFile&& other) noexcept;
  ~NewFile();

  Status write(std::span<const std::byte> bytes, std::int64_t offset);
  Status publish();

 private:
  NewFile(std::string final_path, std::string temporary_path, FileDescriptor file);

  std::string final_path_;
  std::string temporary_path_;  // empty once published or moved from
  FileDescriptor file_;
};

}  // namespace sluice::data
