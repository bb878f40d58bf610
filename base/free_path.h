#pragma once
// Where something new may go without writing over what is there.
//
// Thread contract: free functions that ask the disk; not the frame thread. Nobody is kept from
// taking the name meanwhile.

#include <fmt/format.h>

#include <filesystem>
#include <string>

namespace sluice {

// NAME and ending, else the first of NAME-2, NAME-3 with it that is not there.
inline std::filesystem::path free_path(const std::filesystem::path& folder, const std::string& name,
                                       const std::string& ending = {}) {
  std::error_code error;
  std::filesystem::path path = folder / (name + ending);
  for (int number = 2; std::filesystem::exists(path, error); ++number)
    path = folder / fmt::format("{}-{}{}", name, number, ending);
  return path;
}

// "tiny" of "tiny-3": the third beside it is no "tiny-3-2".
inline std::string without_number(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  const bool is_numbered = dash != std::string::npos && dash > 0 && dash + 1 < name.size() &&
                           name.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  return is_numbered ? name.substr(0, dash) : name;
}

}  // namespace sluice
