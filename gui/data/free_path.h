#pragma once
// Where something new may go without writing over what is there.
//
// Thread contract: free function that asks the disk; not the frame thread. Nobody is kept from
// taking the name meanwhile.

#include <fmt/format.h>

#include <filesystem>
#include <string>

namespace sluice::gui {

// NAME and ending, else the first of NAME-2, NAME-3 with it that is not there.
inline std::filesystem::path free_path(const std::filesystem::path& folder, const std::string& name,
                                       const std::string& ending = {}) {
  std::error_code error;
  std::filesystem::path path = folder / (name + ending);
  for (int number = 2; std::filesystem::exists(path, error); ++number)
    path = folder / fmt::format("{}-{}{}", name, number, ending);
  return path;
}

}  // namespace sluice::gui
