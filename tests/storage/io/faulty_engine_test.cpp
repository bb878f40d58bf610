// The engines' own continuation, retries and messages, reached by faults at the kernel border.

#include "tests/storage/io/faulty_engine.h"

#include <bit>
#include <catch2/catch.hpp>
#include <numeric>

#include "base/units.h"
#include "io_test_support.h"

namespace sluice::io::testing {
namespace {

using Catch::Contains;
using Fault = FaultPlan::Fault;

IoEngineKind each_wrapped_kind() { return GENERATE(IoEngineKind::io_uring, IoEngineKind::posix); }

std::unique_ptr<IoEngine> open_faulty(IoEngineKind kind, FaultPlan plan,
                                      std::size_t queue_depth = 16) {
  return make_faulty_engine(open_engine(kind, queue_depth), std::move(plan));
}

FaultPlan plan_of(const std::vector<Fault>& faults, std::uint64_t seed = 1) {
  FaultPlan plan;
  plan.seed = seed;
  for (const Fault fault : faults) plan.planned.push_back({.request_index = 0, .fault = fault});
  return plan;
}

constexpr std::int64_t kFileBytes = 16 * kPageBytes;

// Number of bits that differ.
int distance(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::transform_reduce(
      a.begin(), a.end(), b.begin(), 0, std::plus(),
      [](std::byte x, std::byte y) { return std::popcount(std::to_integer<unsigned>(x ^ y)); });
}

struct Case {
  TemporaryFolder folder;
  Caching caching = GENERATE(Caching::direct, Caching::buffered);
  File file = make_file(folder.file("a"), kFileBytes, 1, caching);
  PageAlignedBuffer pattern = allocate(kFileBytes);  // what the file holds
  PageAlignedBuffer memory = allocate(kFileBytes);
  Case() { fill_pattern(pattern.bytes(), 1); }
};

}  // namespace

TEST_CASE("a read that comes in pieces is continued") {
  Case data;
  const std::uint64_t seed = GENERATE(1, 2, 3, 4, 5);
  const auto faults = GENERATE(std::vector{Fault::short_transfer},
                               std::vector{Fault::short_transfer, Fault::short_transfer},
                               std::vector{Fault::interrupted, Fault::short_transfer, Fault::again,
                                           Fault::short_transfer, Fault::interrupted});
  const auto engine = open_faulty(each_wrapped_kind(), plan_of(faults, seed));
  REQUIRE(run_one(*engine, {.file = &data.file, .data = data.memory.bytes()}).ok());
  CHECK(equal(data.memory.bytes(), data.pattern.bytes()));
}

TEST_CASE("a write that goes in pieces is continued") {
  Case data;
  const std::uint64_t seed = GENERATE(1, 2, 3);
  const auto engine =
      open_faulty(each_wrapped_kind(),
                  plan_of({Fault::short_transfer, Fault::again, Fault::short_transfer}, seed));
  fill_pattern(data.pattern.bytes(), 99);
  REQUIRE(
      run_one(*engine,
              {.file = &data.file, .data = data.pattern.bytes(), .direction = IoDirection::write})
          .ok());
  REQUIRE(data.file.read_exactly(0, data.memory.bytes()).ok());
  CHECK(equal(data.memory.bytes(), data.pattern.bytes()));
}

TEST_CASE("half a page on a direct file is transferred again as a whole") {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), kPageBytes, 1);
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::short_transfer}));
  PageAlignedBuffer memory = allocate(kPageBytes);
  PageAlignedBuffer expected = allocate(kPageBytes);
  fill_pattern(expected.bytes(), 1);
  REQUIRE(run_one(*engine, {.file = &file, .data = memory.bytes()}).ok());
  CHECK(equal(memory.bytes(), expected.bytes()));
}

TEST_CASE("EINTR and EAGAIN are retried, but not for ever") {
  Case data;
  const Fault fault = GENERATE(Fault::interrupted, Fault::again);
  const IoEngineKind kind = each_wrapped_kind();
  const IoRequest request = {.file = &data.file, .data = data.memory.bytes()};

  const auto patient = open_faulty(kind, plan_of(std::vector(1000, fault)));
  REQUIRE(run_one(*patient, request).ok());
  CHECK(equal(data.memory.bytes(), data.pattern.bytes()));

  const auto engine = open_faulty(kind, plan_of(std::vector(1001, fault)));
  const Status status = run_one(*engine, request);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(),
             Contains(fault == Fault::again ? "EAGAIN" : "EINTR") && Contains("after 0 bytes"));
}

TEST_CASE("a drive that fails is named with place, length and what came") {
  Case data;
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::eio}));
  const Status status =
      run_one(*engine, {.file = &data.file, .offset_bytes = 4096, .data = data.memory.bytes()});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::io);
  CHECK(status.error().message() ==
        data.file.path() +
            ": read of 65536 bytes at offset 4096: EIO (Input/output error) after 0 bytes; the "
            "drive failed the operation: see `dmesg`");
}

TEST_CASE("a transfer that is cut says how far it came") {
  Case data;
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::cut_transfer}));
  const Status status = run_one(*engine, {.file = &data.file, .data = data.memory.bytes()});
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(), Contains("EIO") && !Contains("after 0 bytes"));
  // The beginning came; the end truly did not.
  CHECK(equal(data.memory.bytes().first(1), data.pattern.bytes().first(1)));
  CHECK_FALSE(equal(data.memory.bytes(), data.pattern.bytes()));
}

TEST_CASE("a planned ENOSPC reads like a real one") {
  Case data;
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::no_space}));
  const Status status = run_one(
      *engine, {.file = &data.file, .data = data.memory.bytes(), .direction = IoDirection::write});
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code() == ErrorCode::no_space);
  CHECK_THAT(status.error().message(), Contains("free space or choose another state_dir"));
}

TEST_CASE("a fault hits its own request only") {
  Case data;
  FaultPlan plan;
  plan.planned = {{.request_index = 2, .fault = Fault::eio},
                  {.request_index = 5, .fault = Fault::short_transfer}};
  const auto engine = open_faulty(each_wrapped_kind(), plan);
  std::vector<IoRequest> requests;
  for (std::size_t i = 0; i < 8; ++i) {
    requests.push_back({.file = &data.file,
                        .offset_bytes = static_cast<std::int64_t>(i) * 8192,
                        .data = data.memory.bytes().subspan(i * 8192, 8192),
                        .user_data = i});
  }
  for (const IoCompletion& completion : run_all(*engine, requests))
    CHECK(completion.status.ok() == (completion.user_data != 2));
  CHECK(equal(data.memory.bytes().subspan(3 * 8192), data.pattern.bytes().subspan(3 * 8192)));
}

TEST_CASE("a flipped bit of a read comes without a word") {
  Case data;
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::flip_bit}));
  REQUIRE(run_one(*engine, {.file = &data.file, .data = data.memory.bytes()}).ok());
  CHECK(distance(data.memory.bytes(), data.pattern.bytes()) == 1);
}

TEST_CASE("a flipped bit of a write is on the drive and not in the caller's memory") {
  Case data;
  const auto engine = open_faulty(each_wrapped_kind(), plan_of({Fault::flip_bit}));
  PageAlignedBuffer written = allocate(kFileBytes);
  fill_pattern(written.bytes(), 1);
  REQUIRE(run_one(*engine,
                  {.file = &data.file, .data = written.bytes(), .direction = IoDirection::write})
              .ok());
  CHECK(equal(written.bytes(), data.pattern.bytes()));
  REQUIRE(data.file.read_exactly(0, data.memory.bytes()).ok());
  CHECK(distance(data.memory.bytes(), data.pattern.bytes()) == 1);
}

TEST_CASE("the order of completions is the seed's, whichever engine") {
  const TemporaryFolder folder;
  const File file = make_file(folder.file("a"), kFileBytes, 1);
  PageAlignedBuffer memory = allocate(kFileBytes);
  std::vector<IoRequest> requests;
  for (std::size_t i = 0; i < 16; ++i) {
    requests.push_back({.file = &file,
                        .offset_bytes = static_cast<std::int64_t>(i) * kPageBytes,
                        .data = memory.bytes().subspan(i * kPageBytes, kPageBytes),
                        .user_data = i});
  }
  const auto order = [&](IoEngineKind kind, std::uint64_t seed, std::size_t queue_depth) {
    FaultPlan plan;
    plan.seed = seed;
    plan.shuffle_completions = true;
    const auto engine = open_faulty(kind, plan, queue_depth);
    std::vector<std::uint64_t> users;
    for (const IoCompletion& completion : run_all(*engine, requests)) {
      CHECK(completion.status.ok());
      users.push_back(completion.user_data);
    }
    return users;
  };
  for (const std::size_t queue_depth : {16, 5}) {
    const auto first = order(IoEngineKind::io_uring, 1, queue_depth);
    CHECK(std::is_permutation(first.begin(), first.end(),
                              order(IoEngineKind::posix, 2, queue_depth).begin()));
    CHECK_FALSE(std::is_sorted(first.begin(), first.end()));
    CHECK(first == order(IoEngineKind::posix, 1, queue_depth));
    CHECK(first != order(IoEngineKind::io_uring, 2, queue_depth));
  }
}

TEST_CASE("a faulty engine says so in its name") {
  CHECK(open_faulty(IoEngineKind::io_uring, {})->name() == "faulty(io_uring)");
  CHECK(open_faulty(IoEngineKind::posix, {})->name() == "faulty(posix)");
}

TEST_CASE("a faulty engine may be destroyed with requests in flight") {
  Case data;
  FaultPlan plan = plan_of({Fault::flip_bit, Fault::short_transfer});
  auto engine = open_faulty(each_wrapped_kind(), plan);
  const IoRequest request = {
      .file = &data.file, .data = data.pattern.bytes(), .direction = IoDirection::write};
  REQUIRE(engine->submit(std::span(&request, 1)) == 1);
  engine.reset();
  // What was begun is whole or not there, and nothing of ours was used after its end.
  REQUIRE(data.file.read_exactly(0, data.memory.bytes()).ok());
  CHECK(distance(data.memory.bytes(), data.pattern.bytes()) <= 1);
}

}  // namespace sluice::io::testing
