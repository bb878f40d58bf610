// What only io_uring has: a kernel that refuses it, and registered buffers.

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <string>
#include <thread>

#include "io_test_support.h"
#include "storage/io/detail/registered_buffers.h"
#include "tests/skip.h"

namespace sluice::io::testing {
namespace {

using Catch::Contains;

// From here on io_uring_setup fails with `error_number`, for the calling thread only.
bool refuse_io_uring(unsigned error_number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error_number),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {.len = std::size(program), .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

}  // namespace

TEST_CASE("a kernel that refuses io_uring is an error that says to choose posix") {
  const int error_number = GENERATE(ENOSYS, EPERM);
  bool refused = false;
  Result<std::unique_ptr<IoEngine>> uring = make_error(ErrorCode::internal, "not tried");
  Result<std::unique_ptr<IoEngine>> posix = make_error(ErrorCode::internal, "not tried");
  std::thread([&] {
    refused = refuse_io_uring(static_cast<unsigned>(error_number));
    uring = open_io_engine({.kind = IoEngineKind::io_uring});
    posix = open_io_engine({.kind = IoEngineKind::posix});
  }).join();
  if (!refused) return skip_test("no seccomp filters here");
  REQUIRE_FALSE(uring.ok());
  CHECK(uring.error().code() == ErrorCode::unsupported);
  CHECK_THAT(uring.error().message(),
             Contains("io_engine=posix") && Contains(error_number == EPERM ? "EPERM" : "ENOSYS"));
  CHECK(posix.ok());
}

TEST_CASE("memory is found in the registered buffer that holds all of it") {
  PageAlignedBuffer memory = allocate(10 * 4096);
  const std::span<std::byte> bytes = memory.bytes();
  const std::vector<std::span<std::byte>> buffers = {bytes.subspan(6 * 4096, 2 * 4096),
                                                     bytes.subspan(4096, 2 * 4096)};
  const detail::RegisteredBuffers registered(buffers);
  REQUIRE(registered.pieces().size() == 2);
  const auto find = [&](std::size_t offset, std::size_t size_bytes) {
    return registered.find(bytes.data() + offset, size_bytes);
  };
  CHECK(find(4096, 8192) == 0);  // by address, whatever the order they came in
  CHECK(find(8192, 4096) == 0);
  CHECK(find(6 * 4096, 4096) == 1);
  CHECK(find(0, 4096) == std::nullopt);         // before all
  CHECK(find(8192, 8192) == std::nullopt);      // over the end
  CHECK(find(4 * 4096, 4096) == std::nullopt);  // between
  CHECK(find(9 * 4096, 4096) == std::nullopt);  // behind all
  CHECK(detail::RegisteredBuffers().find(bytes.data(), 1) == std::nullopt);
}

TEST_CASE("a buffer over 1 GiB is registered in pieces that the kernel takes") {
  constexpr std::size_t kBytes = (std::size_t{2} << 30) + 4096;
  // Addresses without memory behind them: only looked up here.
  void* mapped =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), kBytes);
  const detail::RegisteredBuffers registered(std::span(&bytes, 1));
  REQUIRE(registered.pieces().size() == 3);
  const std::byte* second = bytes.data() + (std::size_t{1} << 30);
  CHECK(registered.find(second - 4096, 4096) == 0);
  CHECK(registered.find(second, 4096) == 1);
  CHECK(registered.find(second - 4096, 8192) == std::nullopt);
  munmap(mapped, kBytes);
}

TEST_CASE("buffers that the kernel will not lock are an error with the size") {
  const auto engine = open_engine(IoEngineKind::io_uring, 4);
  void* mapped = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  const std::span<std::byte> bytes(static_cast<std::byte*>(mapped), 4096);
  const Status status = engine->register_buffers(std::span(&bytes, 1));
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains("io_uring_register_buffers") && Contains("EFAULT"));
  munmap(mapped, 4096);
}

}  // namespace sluice::io::testing
