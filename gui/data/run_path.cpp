#include "gui/data/run_path.h"

#include <algorithm>
#include <filesystem>

namespace sluice::gui {

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string completed(const std::string& typed, const std::vector<std::string>& completions) {
  if (completions.empty()) return typed;
  std::string common = completions.front();
  for (const std::string& one : completions) {
    const auto [end, other] = std::ranges::mismatch(common, one);
    common.erase(end, common.end());
  }
  return common.size() > typed.size() ? common : typed;
}

}  // namespace sluice::gui
