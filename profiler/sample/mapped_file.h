#pragma once
// A file's bytes in memory, read as they are looked at.
//
// Thread contract: plain data once it is made.

#include <cstddef>
#include <span>
#include <string>

namespace sluice::sample {

class MappedFile {
 public:
  // Without bytes where the file cannot be read.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sluice::sample
