#pragma once
// A folder of a test's own.
//
// Thread contract: made by one thread.

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace sluice {

// Removed with all that is in it.
class TestFolder {
 public:
  TestFolder() {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("sluice_test_{}_{}", getpid(), count++))
                .string();
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace sluice
