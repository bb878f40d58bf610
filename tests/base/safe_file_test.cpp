#include "base/safe_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/skip.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Catch::Contains;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "sluice-safe-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Result<int> open_file(const std::string& path, int flags, FileTrust trust) {
  return open_regular_file(path, flags, trust, [&](int error_number) {
    return make_error(ErrorCode::io, "{}: {}", path, std::strerror(error_number));
  });
}

std::string refusal_of(const std::string& path, int flags, FileTrust trust) {
  const Result<int> opened = open_file(path, flags, trust);
  if (opened.ok()) {
    ::close(*opened);
    return "opened";
  }
  CHECK_THAT(opened.error().message(), Contains(path));
  return opened.error().message();
}

void write_text(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

constexpr int kLock = O_RDWR | O_CREAT;  // as locks are opened

TEST_CASE("a file of one's own is opened, or made, and does what regular files do") {
  const Folder folder;
  for (int round = 0; round < 2; ++round) {  // made, then there
    const Result<int> opened = open_file(folder / "own", kLock, FileTrust::own);
    REQUIRE(opened.ok());
    CHECK((::fcntl(*opened, F_GETFL) & O_NONBLOCK) == 0);
    CHECK((::fcntl(*opened, F_GETFD) & FD_CLOEXEC) != 0);
    ::close(*opened);
  }
}

TEST_CASE("a link under the name of an own file is refused and what it leads to stays as it is") {
  const Folder folder;
  write_text(folder / "precious", "words");
  fs::create_symlink(folder / "precious", folder / "own");
  CHECK_THAT(refusal_of(folder / "own", kLock, FileTrust::own), Contains("is a symbolic link"));
  CHECK(text_of(folder / "precious") == "words");
  fs::create_symlink(folder / "none", folder / "dangling");
  CHECK_THAT(refusal_of(folder / "dangling", kLock, FileTrust::own),
             Contains("is a symbolic link"));
  CHECK_FALSE(fs::exists(folder / "none"));
}

TEST_CASE("an own file has one name") {
  const Folder folder;
  write_text(folder / "precious", "words");
  fs::create_hard_link(folder / "precious", folder / "own");
  CHECK_THAT(refusal_of(folder / "own", kLock, FileTrust::own), Contains("2 names (hard links)"));
  CHECK(text_of(folder / "precious") == "words");
  fs::remove(folder / "precious");
  CHECK(refusal_of(folder / "own", kLock, FileTrust::own) == "opened");
}

TEST_CASE("a pipe, a socket and a folder are said, and not waited for") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_directory(folder / "folder");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  (folder / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  for (const auto& [trust, flags] :
       {std::pair(FileTrust::own, kLock), std::pair(FileTrust::own, O_RDWR),
        std::pair(FileTrust::own, O_WRONLY), std::pair(FileTrust::given, O_RDONLY)}) {
    CHECK_THAT(refusal_of(folder / "pipe", flags, trust), Contains("is a pipe, not a regular"));
    CHECK_THAT(refusal_of(folder / "socket", flags, trust), Contains("is a socket, not a regular"));
    CHECK_THAT(refusal_of(folder / "folder", flags, trust),
               Contains("is a directory, not a regular"));
  }
  CHECK_THAT(refusal_of("/dev/zero", O_RDONLY, FileTrust::given), Contains("is a device"));
  ::close(socket);
}

TEST_CASE("what the user names may be a link, and may have more names") {
  const Folder folder;
  write_text(folder / "text", "words");
  fs::create_hard_link(folder / "text", folder / "second");
  fs::create_symlink(folder / "second", folder / "link");
  CHECK(refusal_of(folder / "link", O_RDONLY, FileTrust::given) == "opened");
  CHECK_THAT(refusal_of(folder / "none", O_RDONLY, FileTrust::given), Contains("No such file"));
}

TEST_CASE("a file of another user is refused but in a folder of that user's") {
  if (::geteuid() != 0) return skip_test("only root can give files away");
  const Folder folder;
  fs::create_directory(folder / "theirs");
  for (const std::string& path : {folder / "file", folder / "theirs/file"}) {
    write_text(path, "words");
    REQUIRE(::chown(path.c_str(), 12345, 12345) == 0);
  }
  CHECK_THAT(refusal_of(folder / "file", kLock, FileTrust::own), Contains("belongs to user 12345"));
  CHECK_THAT(refusal_of(folder / "theirs/file", kLock, FileTrust::own),
             Contains("belongs to user 12345"));
  REQUIRE(::chown((folder / "theirs").c_str(), 12345, 12345) == 0);
  CHECK(refusal_of(folder / "theirs/file", kLock, FileTrust::own) == "opened");
}

TEST_CASE("an open file knows whether its name still leads to it") {
  const Folder folder;
  const std::string path = folder / "file";
  write_text(path, "words");
  const Result<int> opened = open_file(path, O_RDWR, FileTrust::own);
  REQUIRE(opened.ok());
  CHECK(why_name_is_lost(*opened, path).empty());
  fs::rename(path, folder / "moved");
  CHECK_THAT(why_name_is_lost(*opened, path), Contains("it was moved"));
  write_text(path, "words");
  CHECK_THAT(why_name_is_lost(*opened, path), Contains("another file has its name"));
  fs::rename(folder / "moved", path);
  CHECK(why_name_is_lost(*opened, path).empty());
  fs::remove(path);
  CHECK(why_name_is_lost(*opened, path) == "it was removed");
  ::close(*opened);
}

TEST_CASE("the limit on the size of files has words of its own") {
  CHECK_THAT(file_limit_advice(EFBIG), Contains("ulimit -f"));
  CHECK(file_limit_advice(ENOSPC).empty());
}

}  // namespace
}  // namespace sluice
