#include "io_test_support.h"

#include <poll.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

namespace sluice::io::testing {

TemporaryFolder::TemporaryFolder() {
  const char* parent = std::getenv("TMPDIR");
  path_ = std::string(parent != nullptr ? parent : "/var/tmp") + "/sluice_io_test_XXXXXX";
  REQUIRE(mkdtemp(path_.data()) != nullptr);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // what cannot be removed is left for the system to clean
  std::filesystem::remove_all(path_, ignored);
}

MountedFileSystem::MountedFileSystem(const std::string& type, const std::string& options) {
  if (mount("sluice_test", folder_.path().c_str(), type.c_str(), 0, options.c_str()) != 0)
    refusal_ = "mounting " + type + ": " + std::strerror(errno);
}

MountedFileSystem::~MountedFileSystem() {
  if (is_mounted()) umount2(folder_.path().c_str(), MNT_DETACH);
}

void MountedFileSystem::make_read_only() {
  REQUIRE(mount(nullptr, folder_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) == 0);
}

PageAlignedBuffer allocate(std::int64_t size_bytes) {
  auto buffer = PageAlignedBuffer::allocate(size_bytes);
  REQUIRE(buffer.ok());
  return std::move(*buffer);
}

void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = generator();
    std::memcpy(&bytes[i], &word, std::min(sizeof word, bytes.size() - i));
  }
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

File open_file(const std::string& path, FileAccess access, Caching caching) {
  auto file = File::open(path, {.access = access, .caching = caching});
  INFO((file.ok() ? "" : file.error().message()));
  REQUIRE(file.ok());
  return std::move(*file);
}

File make_file(const std::string& path, std::int64_t size_bytes, std::uint64_t seed,
               Caching caching) {
  const File file = open_file(path, FileAccess::create_new, Caching::buffered);
  PageAlignedBuffer contents = allocate(size_bytes);
  const auto bytes = contents.bytes().first(static_cast<std::size_t>(size_bytes));
  fill_pattern(bytes, seed);
  if (!bytes.empty()) REQUIRE(file.write_exactly(0, bytes).ok());
  REQUIRE(file.sync_data().ok());
  return open_file(path, FileAccess::read_write, caching);
}

std::unique_ptr<IoEngine> open_engine(IoEngineKind kind, std::size_t queue_depth,
                                      std::size_t thread_count) {
  auto engine =
      open_io_engine({.kind = kind, .queue_depth = queue_depth, .thread_count = thread_count});
  INFO((engine.ok() ? "" : engine.error().message()));
  REQUIRE(engine.ok());
  return std::move(*engine);
}

std::vector<IoCompletion> run_all(IoEngine& engine, std::span<const IoRequest> requests) {
  std::vector<IoCompletion> completions(requests.size());
  std::size_t submitted = 0;
  std::size_t reaped = 0;
  while (reaped < requests.size()) {
    submitted += engine.submit(requests.subspan(submitted));
    reaped += engine.reap(std::span(completions).subspan(reaped), 1);
  }
  REQUIRE(engine.inflight_count() == 0);
  return completions;
}

Status run_one(IoEngine& engine, const IoRequest& request) {
  auto completions = run_all(engine, std::span(&request, 1));
  REQUIRE(completions[0].user_data == request.user_data);
  return std::move(completions[0].status);
}

bool is_readable(int fd, int timeout_ms) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

}  // namespace sluice::io::testing
