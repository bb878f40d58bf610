#include "profiler/report/output.h"

#include <filesystem>

#include "tests/profiler/report/made_run.h"

namespace sluice::report {

TEST_CASE("the name says whether a file is compressed") {
  CHECK(compression_of("trace.json.gz") == Compression::gzip);
  CHECK(compression_of("trace.json") == Compression::none);
  CHECK(compression_of("gz") == Compression::none);
}

TEST_CASE("a file is there once it is closed, plain or with the head of gzip; else nothing is") {
  const rundb::TempFolder folder;
  const std::string text(100'000, 'x');
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = folder.file(compression == Compression::gzip ? "a.gz" : "a");
    {
      OutputFile dropped = require_ok(OutputFile::create(path, IfExists::refuse, compression));
      require_ok(dropped.write(text));
    }
    CHECK(!std::filesystem::exists(path));
    CHECK(!std::filesystem::exists(unfinished_path(path)));
    OutputFile file = require_ok(OutputFile::create(path, IfExists::refuse, compression));
    require_ok(file.write(text));
    CHECK(!std::filesystem::exists(path));
    require_ok(file.close());
    const std::string found = text_of_file(path);
    if (compression == Compression::none) CHECK(found == text);
    if (compression == Compression::gzip) {
      CHECK(found.starts_with("\x1f\x8b"));
      CHECK(found.size() < text.size() / 50);
    }
  }
}

// What a full disk refuses only when the last bytes go out is said, too.
TEST_CASE("a disk that is full is an error that says so, and leaves nothing") {
  const rundb::TempFolder folder;
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = folder.file("full");
    std::filesystem::create_symlink("/dev/full", unfinished_path(path));
    OutputFile file = require_ok(OutputFile::create(path, IfExists::refuse, compression));
    require_ok(file.write("a few bytes"));
    const Status status = file.close();
    REQUIRE(!status.ok());
    CHECK(status.error().code() == ErrorCode::no_space);
    CHECK(!std::filesystem::exists(path));
    CHECK(!std::filesystem::is_symlink(unfinished_path(path)));
  }
}

}  // namespace sluice::report
