// What both engines promise (storage/io/io_engine.h), each test for each of them.

#include "storage/io/io_engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "base/units.h"
#include "io_test_support.h"
#include "tests/skip.h"

namespace sluice::io::testing {
namespace {

using Catch::Contains;

IoEngineKind each_kind() { return GENERATE(IoEngineKind::io_uring, IoEngineKind::posix); }

// One request for each piece of `size_bytes` of the file, in order.
std::vector<IoRequest> cut(const File& file, std::span<std::byte> data, std::size_t size_bytes,
                           IoDirection direction) {
  std::vector<IoRequest> requests;
  for (std::size_t offset = 0; offset < data.size(); offset += size_bytes) {
    requests.push_back({.file = &file,
                        .offset_bytes = static_cast<std::int64_t>(offset),
                        .data = data.subspan(offset, std::min(size_bytes, data.size() - offset)),
                        .direction = direction,
                        .user_data = requests.size()});
  }
  return requests;
}

void check_all_ok(const std::vector<IoCompletion>& completions) {
  std::set<std::uint64_t> seen;
  for (const IoCompletion& completion : completions) {
    INFO((completion.status.ok() ? "" : completion.status.error().message()));
    CHECK(completion.status.ok());
    seen.insert(completion.user_data);
  }
  CHECK(seen.size() == completions.size());
}

void check_roundtrip(IoEngine& engine, const File& file, std::span<std::byte> memory,
                     std::size_t request_bytes) {
  const std::span<std::byte> written = memory.first(memory.size() / 2);
  const std::span<std::byte> read = memory.last(memory.size() / 2);
  fill_pattern(written, request_bytes + engine.queue_depth());
  check_all_ok(run_all(engine, cut(file, written, request_bytes, IoDirection::write)));
  check_all_ok(run_all(engine, cut(file, read, request_bytes, IoDirection::read)));
  CHECK(equal(read, written));
}

}  // namespace

TEST_CASE("what is written is read back, at any depth and size") {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const std::size_t queue_depth = GENERATE(1, 3, 16, 64);
  const std::size_t request_bytes = GENERATE(4096, 3 * 4096, 256 * 1024);
  const auto engine = open_engine(each_kind(), queue_depth);
  const File file = open_file(folder.file("a"), FileAccess::create_new, caching);
  PageAlignedBuffer memory = allocate(2 * (64 * 4096 + 4096));
  check_roundtrip(*engine, file, memory.bytes(), request_bytes);
}

TEST_CASE("a buffered file takes any offset, length and memory") {
  const TemporaryFolder folder;
  const auto engine = open_engine(each_kind(), 8);
  const File file = open_file(folder.file("a"), FileAccess::create_new, Caching::buffered);
  PageAlignedBuffer memory = allocate(8 * 4096);
  check_roundtrip(*engine, file, memory.bytes().subspan(3, 20'002), 777);
}

TEST_CASE("requests may lie inside registered buffers, across them, or outside") {
  const TemporaryFolder folder;
  const auto engine = open_engine(each_kind(), 4);
  const File file = open_file(folder.file("a"), FileAccess::create_new);
  PageAlignedBuffer memory = allocate(32 * 4096);
  const std::span<std::byte> bytes = memory.bytes();
  // Registered in two pieces that touch; the rest of the memory is not.
  const std::vector<std::span<std::byte>> registered = {bytes.subspan(8 * 4096, 5 * 4096),
                                                        bytes.subspan(2 * 4096, 6 * 4096)};
  REQUIRE(engine->register_buffers(registered).ok());
  check_roundtrip(*engine, file, bytes, 4 * 4096);
  check_roundtrip(*engine, file, bytes, 4096);
}

TEST_CASE("submit takes what there is room for") {
  const TemporaryFolder folder;
  const auto engine = open_engine(each_kind(), 4);
  CHECK(engine->queue_depth() == 4);
  const File file = make_file(folder.file("a"), 8 * 4096, 1);
  PageAlignedBuffer memory = allocate(8 * 4096);
  const auto requests = cut(file, memory.bytes(), 4096, IoDirection::read);
  CHECK(engine->submit(requests) == 4);
  CHECK(engine->inflight_count() == 4);
  CHECK(engine->submit(requests) == 0);
  std::vector<IoCompletion> completions(8);
  CHECK(engine->reap(std::span(completions).first(3), 3) == 3);
  CHECK(engine->inflight_count() == 1);
  CHECK(engine->submit(std::span(requests).subspan(4)) == 3);
  CHECK(engine->reap(completions, 100) == 4);  // never waits for more than are in flight
  CHECK(engine->reap(completions, 1) == 0);
}

TEST_CASE("a bad request fails alone, and says what is wrong with it") {
  const TemporaryFolder folder;
  const auto engine = open_engine(each_kind(), 16);
  const File file = make_file(folder.file("a"), 8 * 4096, 1);
  PageAlignedBuffer memory = allocate(8 * 4096);
  auto requests = cut(file, memory.bytes(), 4096, IoDirection::read);
  requests[1].offset_bytes = 512;
  requests[2].data = requests[2].data.first(100);
  requests[3].data = memory.bytes().subspan(8, 4096);
  requests[4].data = {};
  requests[5].file = nullptr;
  requests[6].offset_bytes = -4096;
  std::vector<std::string> messages(8);
  for (const IoCompletion& completion : run_all(*engine, requests)) {
    if (!completion.status.ok())
      messages[completion.user_data] = completion.status.error().message();
  }
  CHECK(messages[0] == "");
  CHECK_THAT(messages[1],
             Contains(file.path()) && Contains("offset 512") && Contains("misaligned"));
  CHECK_THAT(messages[2], Contains("100 bytes") && Contains("misaligned"));
  CHECK_THAT(messages[3], Contains("misaligned"));
  CHECK_THAT(messages[4], Contains(file.path()) && Contains("empty"));
  CHECK_THAT(messages[5], Contains("no file"));
  CHECK_THAT(messages[6], Contains("negative"));
  CHECK(messages[7] == "");
  PageAlignedBuffer expected = allocate(8 * 4096);
  fill_pattern(expected.bytes(), 1);
  CHECK(equal(memory.bytes().last(4096), expected.bytes().last(4096)));
}

TEST_CASE("a file that ends inside a request is cut short") {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const std::int64_t size_bytes = GENERATE(0, 100, 8192, 8292);
  const auto engine = open_engine(each_kind(), 2);
  const File file = make_file(folder.file("a"), size_bytes, 1, caching);
  PageAlignedBuffer memory = allocate(4 * 4096);
  const Status status = run_one(*engine, {.file = &file, .data = memory.bytes()});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  CHECK_THAT(status.error().message(),
             Contains(file.path()) && Contains("read of 16384 bytes at offset 0") &&
                 Contains("cut short: " + std::to_string(size_bytes) + " bytes came"));
}

TEST_CASE("a full file system fails the write with what to do, and leaves its neighbours alone") {
  const MountedFileSystem mount("tmpfs", "size=1m");
  if (!mount.is_mounted()) return skip_test(mount.refusal());
  const auto engine = open_engine(each_kind(), 4);
  const File file = open_file(mount.file("a"), FileAccess::create_new, Caching::buffered);
  PageAlignedBuffer memory = allocate(4 << 20);
  const std::vector<IoRequest> requests = {
      {.file = &file, .data = memory.bytes(), .direction = IoDirection::write, .user_data = 0},
      {.file = &file,
       .data = memory.bytes().first(4096),
       .direction = IoDirection::write,
       .user_data = 1}};
  for (const IoCompletion& completion : run_all(*engine, requests)) {
    if (completion.user_data == 1 && completion.status.ok()) continue;
    REQUIRE(completion.user_data == 0);
    REQUIRE_FALSE(completion.status.ok());
    CHECK(completion.status.error().code() == ErrorCode::no_space);
    CHECK_THAT(completion.status.error().message(),
               Contains(file.path()) && Contains("write of 4194304 bytes at offset 0") &&
                   Contains("ENOSPC") && Contains("free space or choose another state_dir"));
  }
}

TEST_CASE("an engine may be destroyed with requests in flight") {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), 64 * 4096, 1);
  PageAlignedBuffer memory = allocate(64 * 4096);
  auto engine = open_engine(each_kind(), 16);
  REQUIRE(engine->submit(cut(file, memory.bytes(), 4 * 4096, IoDirection::read)) == 16);
  engine.reset();
  // From here on nobody writes into the memory (the address sanitizer sees the worker that does).
  fill_pattern(memory.bytes(), 2);
  PageAlignedBuffer expected = allocate(64 * 4096);
  fill_pattern(expected.bytes(), 2);
  CHECK(equal(memory.bytes(), expected.bytes()));
}

TEST_CASE("options out of range are refused with the range") {
  const auto error = [](IoEngineOptions options) {
    auto engine = open_io_engine(options);
    REQUIRE_FALSE(engine.ok());
    CHECK(engine.error().code() == ErrorCode::config);
    return engine.error().message();
  };
  CHECK_THAT(error({.queue_depth = 0}), Contains("queue_depth = 0") && Contains("1 to 32768"));
  CHECK_THAT(error({.queue_depth = 40'000}), Contains("queue_depth = 40000"));
  CHECK_THAT(error({.kind = IoEngineKind::posix, .thread_count = 0}), Contains("thread_count = 0"));
}

}  // namespace sluice::io::testing
