#pragma once
// Names of the files of a state. docs/state_format.md, "Files".
// Thread contract: free functions without state.

#include <fmt/format.h>

#include <string>

#include "base/ids.h"

namespace sluice::state::detail {

inline std::string lock_path(const std::string& directory) { return directory + "/lock"; }
inline std::string log_path(const std::string& directory) { return directory + "/commit.slc"; }
inline std::string device_directory(const std::string& directory, DeviceId device) {
  return fmt::format("{}/dev{}", directory, index_of(device));
}
inline std::string device_path(const std::string& directory, DeviceId device) {
  return device_directory(directory, device) + "/state.slc";
}
// While it is being made.
inline std::string unfinished(const std::string& path) { return path + ".new"; }

}  // namespace sluice::state::detail
