#include "storage/io/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/units.h"
#include "io_test_support.h"
#include "tests/skip.h"

namespace sluice::io::testing {
namespace {

using Catch::Contains;

Error open_error(const std::string& path, FileAccess access, Caching caching) {
  auto file = File::open(path, {.access = access, .caching = caching});
  REQUIRE_FALSE(file.ok());
  CHECK_THAT(file.error().message(), Contains(path));
  return file.error();
}

}  // namespace

TEST_CASE("a missing file is not found, by name") {
  const TemporaryFolder folder;
  const Error error = open_error(folder.file("none"), FileAccess::read_write, Caching::direct);
  CHECK(error.code() == ErrorCode::not_found);
  CHECK_THAT(error.message(), Contains("ENOENT"));
}

TEST_CASE("a folder or a device is not a file") {
  const TemporaryFolder folder;
  const FileAccess access = GENERATE(FileAccess::read_only, FileAccess::read_write);
  CHECK_THAT(open_error(folder.path(), access, Caching::buffered).message(),
             Contains("is a directory"));
  CHECK_THAT(open_error("/dev/null", access, Caching::buffered).message(),
             Contains("not a regular file"));
}

TEST_CASE("create_new refuses a file that is there and leaves it as it is") {
  const TemporaryFolder folder;
  make_file(folder.file("a"), 10, 1);
  const Error error = open_error(folder.file("a"), FileAccess::create_new, Caching::direct);
  CHECK_THAT(error.message(), Contains("is there already"));
  CHECK(std::filesystem::file_size(folder.file("a")) == 10);
}

TEST_CASE("a file that may not be written says so") {
  if (geteuid() == 0) {  // root may write whatever the mode says, but not a read-only mount
    MountedFileSystem mount("tmpfs", "size=1m");
    if (!mount.is_mounted()) return skip_test(mount.refusal());
    make_file(mount.file("a"), 10, 1, Caching::buffered);
    mount.make_read_only();
    CHECK_THAT(open_error(mount.file("a"), FileAccess::read_write, Caching::buffered).message(),
               Contains("EROFS") && Contains("mounted read-only"));
  } else {
    const TemporaryFolder folder;
    make_file(folder.file("a"), 10, 1, Caching::buffered);
    REQUIRE(chmod(folder.file("a").c_str(), 0444) == 0);
    CHECK_THAT(open_error(folder.file("a"), FileAccess::read_write, Caching::buffered).message(),
               Contains("EACCES") && Contains("check owner and mode"));
  }
}

TEST_CASE("a file system without O_DIRECT is an error, not a fallback") {
  const Error error = open_error("/proc/version", FileAccess::read_only, Caching::direct);
  CHECK(error.code() == ErrorCode::unsupported);
  CHECK_THAT(error.message(), Contains("has no O_DIRECT") && Contains("choose a state_dir"));
}

TEST_CASE("a file that could not be made direct is not left behind") {
  const MountedFileSystem mount("ramfs", "");
  if (!mount.is_mounted()) return skip_test(mount.refusal());
  const Error error = open_error(mount.file("a"), FileAccess::create_new, Caching::direct);
  CHECK_THAT(error.message(), Contains("has no O_DIRECT"));
  CHECK_FALSE(std::filesystem::exists(mount.file("a")));
}

TEST_CASE("allocate reserves blocks and sets the size, also to a smaller one") {
  const TemporaryFolder folder;
  const File file = open_file(folder.file("a"), FileAccess::create_new);
  for (const std::int64_t size_bytes : {1 << 20, 1 << 16}) {
    REQUIRE(file.allocate(size_bytes).ok());
    CHECK(*file.size_bytes() == size_bytes);
    struct stat info = {};
    REQUIRE(fstat(file.fd(), &info) == 0);
    CHECK(info.st_blocks * 512 >= size_bytes);
  }
}

TEST_CASE("allocate on a full file system says how much is free and gives back what it took") {
  const MountedFileSystem mount("tmpfs", "size=1m");
  if (!mount.is_mounted()) return skip_test(mount.refusal());
  const File file = make_file(mount.file("a"), 4096, 1, Caching::buffered);
  const Status status = file.allocate(8 << 20);
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::no_space);
  CHECK_THAT(status.error().message(), Contains(file.path()) && Contains("8388608 bytes") &&
                                           Contains("ENOSPC") && Contains("1.04 MB free") &&
                                           Contains("free space or choose another state_dir"));
  CHECK(*file.size_bytes() == 4096);
}

TEST_CASE("blocking transfers are whole") {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const File file = open_file(folder.file("a"), FileAccess::create_new, caching);
  PageAlignedBuffer written = allocate(3 * kPageBytes);
  fill_pattern(written.bytes(), 7);
  REQUIRE(file.write_exactly(2 * kPageBytes, written.bytes()).ok());
  REQUIRE(file.sync_data().ok());
  PageAlignedBuffer read = allocate(3 * kPageBytes);
  REQUIRE(file.read_exactly(2 * kPageBytes, read.bytes()).ok());
  CHECK(equal(read.bytes(), written.bytes()));
}

TEST_CASE("reading past the end says how much came") {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const std::int64_t size_bytes = GENERATE(0, 100, 4096, 4196);
  const File file = make_file(folder.file("a"), size_bytes, 1, caching);
  PageAlignedBuffer buffer = allocate(2 * kPageBytes);
  const Status status = file.read_exactly(0, buffer.bytes());
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  CHECK_THAT(status.error().message(),
             Contains(file.path()) && Contains("read of 8192 bytes at offset 0") &&
                 Contains("cut short") && Contains(std::to_string(size_bytes) + " bytes came"));
}

TEST_CASE("a blocking transfer on a direct file must be aligned") {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), 2 * kPageBytes, 1);
  PageAlignedBuffer buffer = allocate(kPageBytes);
  CHECK_THAT(file.read_exactly(512, buffer.bytes()).error().message(), Contains("misaligned"));
  CHECK_THAT(file.read_exactly(0, buffer.bytes().first(512)).error().message(),
             Contains("misaligned"));
}

TEST_CASE("writing to a file opened for reading is an error that names it") {
  const TemporaryFolder folder;
  make_file(folder.file("a"), kPageBytes, 1);
  const File file = open_file(folder.file("a"), FileAccess::read_only);
  const PageAlignedBuffer buffer = allocate(kPageBytes);
  CHECK_THAT(
      file.write_exactly(0, buffer.bytes()).error().message(),
      Contains(file.path()) && Contains("EBADF") && Contains("not opened for this direction"));
}

TEST_CASE("a file that was moved is closed once") {
  const TemporaryFolder folder;
  File first = make_file(folder.file("a"), kPageBytes, 1);
  File second = make_file(folder.file("b"), 2 * kPageBytes, 1);
  first = std::move(second);
  CHECK(first.path() == folder.file("b"));
  CHECK(*first.size_bytes() == 2 * kPageBytes);
}

}  // namespace sluice::io::testing
