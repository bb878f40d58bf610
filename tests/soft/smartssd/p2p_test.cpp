// P2P buffers: a drive reads and writes device memory, past the host's copy, with O_DIRECT.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <numeric>

#include "tests/soft/smartssd/soft_xrt.h"
#include "tests/test_folder.h"

using namespace sluice;
using namespace sluice::soft_smartssd;

namespace {

constexpr std::size_t kP2pBytes = 1 << 20;
constexpr std::size_t kWords = kP2pBytes / 4;

// A file of the words 0, 1, 2, ..., opened with O_DIRECT; -1 where the file system has none.
class DirectFile {
 public:
  DirectFile() {
    std::vector<std::uint32_t> words(kWords);
    std::iota(words.begin(), words.end(), 0u);
    const std::string path = folder_.file("words");
    const int buffered = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(write(buffered, words.data(), kP2pBytes) == static_cast<ssize_t>(kP2pBytes));
    REQUIRE(fsync(buffered) == 0);
    close(buffered);
    fd_ = open(path.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  }
  ~DirectFile() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  TestFolder folder_;
  int fd_ = -1;
};

bool skips_for_file(const DirectFile& file) {
  if (file.fd() < 0) skip_test(std::string("O_DIRECT in the temporary folder: ") + strerror(errno));
  return file.fd() < 0;
}

}  // namespace

TEST_CASE("a drive's words go through a kernel and back, with no sync and no host copy") {
  if (skips_for_xrt()) return;
  const DirectFile file;
  if (skips_for_file(file)) return;
  const SoftXrt soft;
  const auto loaded = soft.open();
  xrt::kernel scale = loaded.kernel("scale");
  xrt::bo buffer(loaded.device, kP2pBytes, xrt::bo::flags::p2p, scale.group_id(0));
  auto* const mapped = buffer.map<std::uint32_t*>();
  REQUIRE(reinterpret_cast<std::uintptr_t>(mapped) % 4096 == 0);

  REQUIRE(pread(file.fd(), mapped, kP2pBytes, 0) == static_cast<ssize_t>(kP2pBytes));
  REQUIRE(scale(buffer, 3u, std::uint64_t{kWords}).wait(kLong) == ERT_CMD_STATE_COMPLETED);
  REQUIRE(pwrite(file.fd(), mapped, kP2pBytes, 0) == static_cast<ssize_t>(kP2pBytes));

  xrt::bo again(loaded.device, kP2pBytes, xrt::bo::flags::p2p, scale.group_id(0));
  const auto* const words = again.map<const std::uint32_t*>();
  REQUIRE(pread(file.fd(), again.map<void*>(), kP2pBytes, 0) == static_cast<ssize_t>(kP2pBytes));
  CHECK(words[0] == 1);
  CHECK(words[kWords - 1] == 3 * (kWords - 1) + 1);
}

TEST_CASE(
    "a read into a buffer whose later half cannot be reached fails, into the first it does not") {
  if (skips_for_xrt()) return;
  const DirectFile file;
  if (skips_for_file(file)) return;
  const SoftXrt soft("fault=unreachable_p2p@1");
  const auto loaded = soft.open();
  xrt::bo buffer(loaded.device, kP2pBytes, xrt::bo::flags::p2p, 0);
  auto* const mapped = buffer.map<char*>();
  CHECK(pread(file.fd(), mapped, kP2pBytes / 2, 0) == static_cast<ssize_t>(kP2pBytes / 2));
  CHECK(pread(file.fd(), mapped, kP2pBytes, 0) == -1);
  CHECK(errno == EFAULT);

  xrt::bo whole(loaded.device, kP2pBytes, xrt::bo::flags::p2p, 0);
  CHECK(pread(file.fd(), whole.map<void*>(), kP2pBytes, 0) == static_cast<ssize_t>(kP2pBytes));
}
