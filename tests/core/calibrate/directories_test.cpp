#include "core/calibrate/directories.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace sluice::calibrate {
namespace {

namespace fs = std::filesystem;

struct Folder {
  // The working directory: /tmp may lie in memory.
  Folder() : path(fs::absolute("calibrate-directories-" + std::to_string(getpid()))) {
    fs::create_directories(path / "a");
    fs::create_directories(path / "b");
    std::ofstream(path / "file") << "text";
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  fs::path path;
};

std::string refusal(const std::vector<std::string>& paths, std::int64_t size_bytes) {
  const auto checked = check_directories(paths, size_bytes);
  return checked.ok() ? "" : checked.error().message();
}

}  // namespace

TEST_CASE("folders on one file system are taken, and said to share its drive") {
  const Folder folder;
  const auto checked =
      check_directories(std::vector<std::string>{folder / "a", folder / "b"}, 1 << 20);
  REQUIRE(checked.ok());
  CHECK((*checked)[0].capacity_bytes > 0);
  const auto sentences = shared_volumes(*checked);
  REQUIRE(sentences.size() == 1);
  CHECK(sentences[0].find("one file system") != std::string::npos);
}

TEST_CASE("what cannot be measured is refused with its name and why") {
  const Folder folder;
  CHECK(refusal({folder / "none"}, 4096).find("No such file") != std::string::npos);
  CHECK(refusal({folder / "file"}, 4096).find("not a folder") != std::string::npos);
  CHECK(refusal({folder / "a", folder / "../" + folder.path.filename().string() + "/a"}, 4096)
            .find("same folder") != std::string::npos);
  const std::string full = refusal({folder / "a"}, std::int64_t{1} << 60);
  CHECK(full.find("free") != std::string::npos);
  CHECK(full.find("--size") != std::string::npos);
}

TEST_CASE("test files of one file system must fit together") {
  const Folder folder;
  const auto free_bytes = static_cast<std::int64_t>(fs::space(folder.path).available);
  CHECK_FALSE(refusal({folder / "a", folder / "b"}, free_bytes / 8 * 5 / 4096 * 4096).empty());
}

}  // namespace sluice::calibrate
