#include "profiler/report/output.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

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

// Files may not have a byte as long as it lives.
class NoRoom {
 public:
  NoRoom() : heard_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &none);
  }
  ~NoRoom() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, heard_);
  }

 private:
  void (*heard_)(int);
  rlimit before_ = {};
};

// What is refused only when the last bytes go out is said, too.
TEST_CASE("a file that has no room is an error that says so, and leaves nothing") {
  const rundb::TempFolder folder;
  for (const Compression compression : {Compression::none, Compression::gzip}) {
    const std::string path = folder.file("full");
    OutputFile file = require_ok(OutputFile::create(path, IfExists::refuse, compression));
    require_ok(file.write("a few bytes"));
    const Status status = [&] {
      const NoRoom no_room;
      return file.close();
    }();
    REQUIRE(!status.ok());
    CHECK(status.error().code() == ErrorCode::no_space);
    CHECK(status.error().message().find("ulimit -f") != std::string::npos);
    CHECK(!std::filesystem::exists(path));
    CHECK(!std::filesystem::exists(unfinished_path(path)));
  }
}

TEST_CASE("a link in an unfinished file's place is removed, and what it leads to left alone") {
  const rundb::TempFolder folder;
  const std::string path = folder.file("page.html");
  const std::string precious = folder.file("precious");
  std::ofstream(precious) << "words";
  std::filesystem::create_symlink(precious, unfinished_path(path));
  OutputFile file = require_ok(OutputFile::create(path, IfExists::refuse, Compression::none));
  require_ok(file.write("a page"));
  require_ok(file.close());
  CHECK(text_of_file(path) == "a page");
  CHECK(text_of_file(precious) == "words");
}

}  // namespace sluice::report
