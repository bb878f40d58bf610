#pragma once
// The folders whose drives are measured: can a test file be put there, and is there a drive below?
//
// Thread contract: free functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::calibrate {

struct Directory {
  std::string path;
  std::string file_system;  // "ext4"
  std::int64_t capacity_bytes = 0;
  std::uint64_t volume = 0;  // equal: one file system
};

// Errors are ErrorCode::config or not_found and name the folder: it is not there, is no folder, is
// named twice, cannot be written, lies in memory, or has less than `size_bytes` free.
Result<std::vector<Directory>> check_directories(std::span<const std::string> paths,
                                                 std::int64_t size_bytes);

// "a and b lie on one file system ...", one sentence for each such pair of neighbours; they are
// measured all the same, and share what the drive gives.
std::vector<std::string> shared_volumes(std::span<const Directory> directories);

}  // namespace sluice::calibrate
