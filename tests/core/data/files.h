#pragma once
// A folder that lasts as long as a test, and whole files in and out of strings.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/data/token_file.h"

namespace sluice::data {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-data-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// All tokens of a file; fails the test that cannot read them.
inline std::vector<std::int32_t> all_tokens(const TokenFile& file) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(file.token_count()));
  const Status read = file.read(0, tokens);
  if (!read.ok()) throw std::runtime_error(read.error().message());
  return tokens;
}

}  // namespace sluice::data
