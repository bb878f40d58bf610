// Counts what the whole test program allocates while a steady stream of requests runs.

#include <catch2/catch.hpp>

#include "base/units.h"
#include "io_test_support.h"
#include "tests/allocation_count.h"

namespace sluice::io::testing {
namespace {

// Submits and reaps all requests `round_count` times over; returns how many failed. A round ends
// before the next begins, since both use the same memory.
int stream(IoEngine& engine, std::span<const IoRequest> requests,
           std::span<IoCompletion> completions, int round_count) {
  int failed_count = 0;
  for (int round = 0; round < round_count; ++round) {
    for (std::size_t next = 0; next < requests.size() || engine.inflight_count() > 0;) {
      next += engine.submit(requests.subspan(next));
      const std::size_t count = engine.reap(completions, 1);
      for (const IoCompletion& completion : completions.first(count))
        failed_count += completion.status.ok() ? 0 : 1;
    }
  }
  return failed_count;
}

}  // namespace

TEST_CASE("submit and reap allocate nothing in a steady state") {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), 16 * kPageBytes, 1);
  const auto engine = open_engine(GENERATE(IoEngineKind::io_uring, IoEngineKind::posix), 8);
  PageAlignedBuffer memory = allocate(16 * kPageBytes);
  const std::span<std::byte> registered = memory.bytes().first(8 * kPageBytes);
  REQUIRE(engine->register_buffers(std::span(&registered, 1)).ok());
  std::vector<IoRequest> requests;
  for (std::size_t page = 0; page < 16; ++page) {
    requests.push_back({.file = &file,
                        .offset_bytes = static_cast<std::int64_t>(page) * kPageBytes,
                        .data = memory.bytes().subspan(page * kPageBytes, kPageBytes),
                        .direction = page % 2 == 0 ? IoDirection::read : IoDirection::write});
  }
  std::vector<IoCompletion> completions(8);
  REQUIRE(stream(*engine, requests, completions, 2) == 0);  // warm

  const std::int64_t before = allocation_count();
  const int failed_count = stream(*engine, requests, completions, 20);
  const std::int64_t after = allocation_count();
  CHECK(failed_count == 0);
  CHECK(after - before == 0);

  // The counter does count.
  requests[0].data = {};
  REQUIRE(stream(*engine, std::span(requests).first(1), completions, 1) == 1);
  CHECK(allocation_count() > after);
}

}  // namespace sluice::io::testing
