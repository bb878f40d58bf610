// A place for a merged record is this process's own, goes with it, and does not pile up.

#include "profiler/report/merged_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "profiler/report/merged_record.h"
#include "tests/profiler/made_ranks.h"

namespace sluice::report {
namespace {

namespace fs = std::filesystem;
using rundb::require_ok;

std::size_t folders_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a merged record in a place of its own is there as long as the place") {
  const rundb::TempFolder folder;
  const std::string below = folder.file("cache/merged");
  std::string path;
  {
    const MergedFile file = require_ok(MergedFile::create(below));
    path = file.path();
    CHECK_FALSE(fs::exists(path));
    const auto records = require_ok(analyze::open_rank_records(write_made_ranks(folder)));
    require_ok(merge_records(records, path, IfExists::refuse));
    // Again, as the run goes on.
    require_ok(merge_records(records, path, IfExists::replace));
    CHECK(require_ok(analyze::open_rank_records({path})).size() == 3);
    CHECK(folders_in(below) == 1);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(folders_in(below) == 0);
}

TEST_CASE("places are apart, and one that is in use is left alone") {
  const rundb::TempFolder folder;
  const MergedFile one = require_ok(MergedFile::create(folder.file("merged")));
  std::ofstream(one.path()) << "one";
  const MergedFile other = require_ok(MergedFile::create(folder.file("merged")));
  CHECK(one.path() != other.path());
  CHECK(fs::exists(one.path()));
}

TEST_CASE("what a process that was killed has left is removed by the next") {
  const rundb::TempFolder folder;
  const std::string below = folder.file("merged");
  const pid_t killed = ::fork();
  if (killed == 0) {
    const auto file = MergedFile::create(below);
    if (file.ok()) std::ofstream(file->path()) << "half a record";
    ::_exit(file.ok() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(killed, &status, 0) == killed);
  REQUIRE(status == 0);
  REQUIRE(folders_in(below) == 1);
  const MergedFile next = require_ok(MergedFile::create(below));
  CHECK(folders_in(below) == 1);
  CHECK_FALSE(fs::exists(next.path()));
}

TEST_CASE("a folder in which no place can be made is named, with what to do") {
  const rundb::TempFolder folder;
  std::ofstream(folder.file("file")) << "no folder";
  const auto file = MergedFile::create(folder.file("file/merged"));
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().message().find("XDG_CACHE_HOME") != std::string::npos);
}

}  // namespace sluice::report
