#pragma once
// What every I/O engine promises (storage/io/io_engine.h), as cases for each implementation.
//
// Thread contract: as tests/conformance.h.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/units.h"
#include "storage/io/io_engine.h"
#include "tests/conformance.h"
#include "tests/skip.h"
#include "tests/storage/io/io_test_support.h"

namespace sluice::io::testing {

using Catch::Contains;

// An engine of the implementation at hand with that queue depth.
using OpenEngine = std::function<std::unique_ptr<IoEngine>(std::size_t queue_depth)>;

// One request for each piece of `size_bytes` of the file, in order.
inline std::vector<IoRequest> cut(const File& file, std::span<std::byte> data,
                                  std::size_t size_bytes, IoDirection direction) {
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

inline void check_all_ok(const std::vector<IoCompletion>& completions) {
  std::set<std::uint64_t> seen;
  for (const IoCompletion& completion : completions) {
    INFO((completion.status.ok() ? "" : completion.status.error().message()));
    CHECK(completion.status.ok());
    seen.insert(completion.user_data);
  }
  CHECK(seen.size() == completions.size());
}

inline void check_roundtrip(IoEngine& engine, const File& file, std::span<std::byte> memory,
                            std::size_t request_bytes) {
  const std::span<std::byte> written = memory.first(memory.size() / 2);
  const std::span<std::byte> read = memory.last(memory.size() / 2);
  fill_pattern(written, request_bytes + engine.queue_depth());
  check_all_ok(run_all(engine, cut(file, written, request_bytes, IoDirection::write)));
  check_all_ok(run_all(engine, cut(file, read, request_bytes, IoDirection::read)));
  CHECK(equal(read, written));
}

// A file of sixteen pages, and what reads them.
struct PagesOfFile {
  TemporaryFolder folder;
  File file = make_file(folder.file("a"), 16 * kPageBytes, 1);
  PageAlignedBuffer memory = allocate(16 * kPageBytes);
  std::vector<IoCompletion> completions = std::vector<IoCompletion>(16);

  IoRequest read(std::size_t page) {
    return {.file = &file,
            .offset_bytes = static_cast<std::int64_t>(page) * kPageBytes,
            .data = memory.bytes().subspan(page * kPageBytes, kPageBytes),
            .user_data = page};
  }
};

// Polls and reaps as an event loop does, never waiting inside reap().
inline std::vector<std::uint64_t> poll_all(IoEngine& engine, std::span<IoCompletion> completions) {
  std::vector<std::uint64_t> users;
  while (engine.inflight_count() > 0) {
    REQUIRE(is_readable(engine.completion_fd(), kLongMs));
    const std::size_t count = engine.reap(completions, 0);
    for (const IoCompletion& completion : completions.first(count))
      users.push_back(completion.user_data);
  }
  return users;
}

inline void check_any_depth_and_size(const OpenEngine& open) {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const std::size_t queue_depth = GENERATE(1, 3, 16, 64);
  const std::size_t request_bytes = GENERATE(4096, 3 * 4096, 256 * 1024);
  const auto engine = open(queue_depth);
  const File file = open_file(folder.file("a"), FileAccess::create_new, caching);
  PageAlignedBuffer memory = allocate(2 * (64 * 4096 + 4096));
  check_roundtrip(*engine, file, memory.bytes(), request_bytes);
}

inline void check_buffered_file(const OpenEngine& open) {
  const TemporaryFolder folder;
  const auto engine = open(8);
  const File file = open_file(folder.file("a"), FileAccess::create_new, Caching::buffered);
  PageAlignedBuffer memory = allocate(8 * 4096);
  check_roundtrip(*engine, file, memory.bytes().subspan(3, 20'002), 777);
}

inline void check_registered_buffers(const OpenEngine& open) {
  const TemporaryFolder folder;
  const auto engine = open(4);
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

inline void check_room(const OpenEngine& open) {
  const TemporaryFolder folder;
  const auto engine = open(4);
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

inline void check_bad_requests(const OpenEngine& open) {
  const TemporaryFolder folder;
  const auto engine = open(16);
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

inline void check_cut_file(const OpenEngine& open) {
  const TemporaryFolder folder;
  const Caching caching = GENERATE(Caching::direct, Caching::buffered);
  const std::int64_t size_bytes = GENERATE(0, 100, 8192, 8292);
  const auto engine = open(2);
  const File file = make_file(folder.file("a"), size_bytes, 1, caching);
  PageAlignedBuffer memory = allocate(4 * 4096);
  const Status status = run_one(*engine, {.file = &file, .data = memory.bytes()});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::corrupt);
  CHECK_THAT(status.error().message(),
             Contains(file.path()) && Contains("read of 16384 bytes at offset 0") &&
                 Contains("cut short: " + std::to_string(size_bytes) + " bytes came"));
}

inline void check_destroyed_in_flight(const OpenEngine& open) {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), 64 * 4096, 1);
  PageAlignedBuffer memory = allocate(64 * 4096);
  auto engine = open(16);
  REQUIRE(engine->submit(cut(file, memory.bytes(), 4 * 4096, IoDirection::read)) == 16);
  engine.reset();
  // From here on nobody writes into the memory (the address sanitizer sees the worker that does).
  fill_pattern(memory.bytes(), 2);
  PageAlignedBuffer expected = allocate(64 * 4096);
  fill_pattern(expected.bytes(), 2);
  CHECK(equal(memory.bytes(), expected.bytes()));
}

inline void check_eventfd(const OpenEngine& open) {
  PagesOfFile data;
  const auto engine = open(4);
  CHECK_FALSE(is_readable(engine->completion_fd()));
  const IoRequest request = data.read(0);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(engine->submit(std::span(&request, 1)) == 1);
    CHECK(poll_all(*engine, data.completions) == std::vector<std::uint64_t>{0});
    CHECK_FALSE(is_readable(engine->completion_fd()));
  }
}

inline void check_eventfd_of_refused(const OpenEngine& open) {
  PagesOfFile data;
  const auto engine = open(4);
  IoRequest request = data.read(0);
  request.data = {};
  REQUIRE(engine->submit(std::span(&request, 1)) == 1);
  CHECK(is_readable(engine->completion_fd()));
  CHECK(engine->reap(data.completions, 0) == 1);
  CHECK_FALSE(is_readable(engine->completion_fd()));
}

inline void check_eventfd_of_rest(const OpenEngine& open) {
  PagesOfFile data;
  const auto engine = open(8);
  std::vector<IoRequest> requests;
  for (std::size_t page = 0; page < 8; ++page) {
    requests.push_back(data.read(page));
    if (page % 3 == 0) requests.back().data = {};
  }
  REQUIRE(engine->submit(requests) == 8);
  CHECK(poll_all(*engine, std::span(data.completions).first(1)).size() == 8);
  CHECK_FALSE(is_readable(engine->completion_fd()));
}

inline void check_eventfd_read_by_others(const OpenEngine& open) {
  PagesOfFile data;
  const auto engine = open(8);
  std::vector<IoRequest> requests;
  for (std::size_t page = 0; page < 8; ++page) requests.push_back(data.read(page));
  REQUIRE(engine->submit(requests) == 8);
  std::size_t count = 0;
  while (count < 8) {
    REQUIRE(is_readable(engine->completion_fd(), kLongMs));
    std::uint64_t raised = 0;
    REQUIRE(::read(engine->completion_fd(), &raised, sizeof raised) == sizeof raised);
    count += engine->reap(std::span(data.completions).first(2), 0);
  }
}

inline std::vector<ConformanceCase<OpenEngine>> io_engine_cases() {
  return {
      {"what is written is read back, at any depth and size", check_any_depth_and_size},
      {"a buffered file takes any offset, length and memory", check_buffered_file},
      {"requests may lie inside registered buffers, across them, or outside",
       check_registered_buffers},
      {"submit takes what there is room for", check_room},
      {"a bad request fails alone, and says what is wrong with it", check_bad_requests},
      {"a file that ends inside a request is cut short", check_cut_file},
      {"an engine may be destroyed with requests in flight", check_destroyed_in_flight},
      {"the eventfd is readable from a completion to its reaping", check_eventfd},
      {"the eventfd is readable at once for a request that the engine itself refuses",
       check_eventfd_of_refused},
      {"the eventfd stays readable while reaping leaves something", check_eventfd_of_rest},
      {"whoever polls may read the eventfd and misses nothing", check_eventfd_read_by_others},
  };
}

// Not among the cases above: it needs a file system of its own, and is skipped without.
inline void check_full_file_system(const OpenEngine& open, const MountedFileSystem& mount) {
  const auto engine = open(4);
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

}  // namespace sluice::io::testing
