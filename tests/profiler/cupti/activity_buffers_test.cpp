#include "profiler/cupti/activity_buffers.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

namespace sluice::cupti {
namespace {

std::unique_ptr<ActivityBuffers> make(const ActivityBufferOptions& options) {
  auto pool = ActivityBuffers::create(options);
  REQUIRE(pool.ok());
  return std::move(*pool);
}

struct Lent {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
};

Lent request(ActivityBuffers& pool) {
  Lent lent;
  pool.request(&lent.data, &lent.size);
  return lent;
}

bool is_zero(const std::uint8_t* data, std::size_t size) {
  return std::all_of(data, data + size, [](std::uint8_t byte) { return byte == 0; });
}

TEST_CASE("a buffer is lent page-aligned and zeroed, comes back, and is lent zeroed again") {
  auto pool = make({.buffer_bytes = 10'000, .count_max = 1, .preallocated_count = 1});
  const auto page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (int round = 0; round < 3; ++round) {
    const Lent lent = request(*pool);
    REQUIRE(lent.size == 3 * page_bytes);
    REQUIRE(reinterpret_cast<std::uintptr_t>(lent.data) % page_bytes == 0);
    REQUIRE(is_zero(lent.data, lent.size));
    std::memset(lent.data, 0xff, lent.size);
    pool->complete(lent.data, 80);
    const std::vector<CompletedBuffer> taken = pool->take_completed();
    REQUIRE(taken.size() == 1);
    REQUIRE(taken[0].data == lent.data);
    REQUIRE(taken[0].valid_bytes == 80);
    REQUIRE(pool->take_completed().empty());
    pool->give_back(taken);
  }
  REQUIRE(pool->counts().completed == 3);
  REQUIRE(pool->counts().allocated == 1);
}

TEST_CASE("the pool is bounded: requests beyond it are refused and counted") {
  auto pool = make({.buffer_bytes = 4096, .count_max = 3, .preallocated_count = 1});
  std::vector<Lent> lent;
  for (int i = 0; i < 3; ++i) {
    lent.push_back(request(*pool));
    REQUIRE(lent.back().data != nullptr);
  }
  const Lent refused = request(*pool);
  REQUIRE(refused.data == nullptr);
  REQUIRE(refused.size == 0);
  REQUIRE(pool->counts().refused == 1);
  REQUIRE(pool->counts().lent == 3);
  REQUIRE(pool->counts().allocated == 3);
  // One that comes back empty can be lent at once.
  pool->complete(lent[1].data, 0);
  REQUIRE(request(*pool).data == lent[1].data);
  REQUIRE(pool->take_completed().empty());
}

TEST_CASE("buffers are taken in the order in which they came back") {
  auto pool = make({.buffer_bytes = 4096, .count_max = 3});
  const Lent first = request(*pool), second = request(*pool), third = request(*pool);
  for (const Lent& lent : {third, first, second}) pool->complete(lent.data, 8);
  std::vector<std::uint8_t*> order;
  for (const CompletedBuffer& taken : pool->take_completed()) order.push_back(taken.data);
  REQUIRE(order == std::vector<std::uint8_t*>{third.data, first.data, second.data});
}

TEST_CASE("a buffer that was never lent, or comes back twice, is counted and left alone") {
  auto pool = make({.buffer_bytes = 4096, .count_max = 2});
  std::uint8_t foreign[64] = {};
  pool->complete(foreign, 64);
  const Lent lent = request(*pool);
  pool->complete(lent.data, 8);
  pool->complete(lent.data, 8);
  REQUIRE(pool->counts().foreign == 2);
  REQUIRE(pool->take_completed().size() == 1);
}

TEST_CASE("a closed pool refuses, and frees each buffer when it comes back") {
  auto pool = make({.buffer_bytes = 4096, .count_max = 4, .preallocated_count = 4});
  const Lent with_cupti = request(*pool), taken = request(*pool), untaken = request(*pool);
  pool->complete(taken.data, 8);
  const std::vector<CompletedBuffer> being_decoded = pool->take_completed();
  pool->complete(untaken.data, 8);
  pool->close();
  REQUIRE(pool->counts().allocated == 2);
  REQUIRE(pool->counts().discarded == 1);
  REQUIRE(request(*pool).data == nullptr);
  pool->give_back(being_decoded);
  REQUIRE(pool->counts().allocated == 1);
  pool->complete(with_cupti.data, 8);
  REQUIRE(pool->counts().allocated == 0);
  REQUIRE(pool->counts().lent == 0);
}

TEST_CASE("callbacks lead to the attached pool; without one they refuse; late ones do no harm") {
  std::uint8_t* data = nullptr;
  std::size_t size = 1, record_count_max = 1;
  auto pool = make({.buffer_bytes = 4096, .count_max = 1});
  REQUIRE(pool->try_attach());
  auto other = make({.buffer_bytes = 4096, .count_max = 1});
  REQUIRE_FALSE(other->try_attach());
  ActivityBuffers::on_requested(&data, &size, &record_count_max);
  REQUIRE(data != nullptr);
  REQUIRE(size == 4096);
  REQUIRE(record_count_max == 0);
  ActivityBuffers* const retired = pool.get();
  ActivityBuffers::retire(std::move(pool));
  ActivityBuffers::on_completed(data, size, 8);
  REQUIRE(retired->counts().allocated == 0);
  ActivityBuffers::on_requested(&data, &size, &record_count_max);
  REQUIRE(data == nullptr);
  REQUIRE(other->try_attach());
  ActivityBuffers::retire(std::move(other));
}

TEST_CASE(
    "threads that fill and one that decodes trade buffers, and no record is lost or doubled") {
  auto pool = make({.buffer_bytes = 4096, .count_max = 4, .preallocated_count = 2});
  constexpr int kThreads = 2;
  constexpr std::uint64_t kRounds = 3000;
  std::atomic<std::uint64_t> sent{0}, refused{0};
  std::atomic<int> running{kThreads};
  std::vector<std::thread> fillers;
  for (int t = 0; t < kThreads; ++t) {
    fillers.emplace_back([&] {
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        const Lent lent = request(*pool);
        if (lent.data == nullptr) {
          refused += 1;
          std::this_thread::yield();
          continue;
        }
        std::memcpy(lent.data, &i, sizeof i);
        sent += i;
        pool->complete(lent.data, sizeof i);
      }
      running -= 1;
    });
  }
  std::uint64_t received = 0;
  for (bool last_round = false; !last_round;) {
    last_round = running.load() == 0;
    const std::vector<CompletedBuffer> taken = pool->take_completed();
    for (const CompletedBuffer& buffer : taken) {
      std::uint64_t value;
      std::memcpy(&value, buffer.data, sizeof value);
      received += value;
    }
    pool->give_back(taken);
  }
  for (std::thread& filler : fillers) filler.join();
  REQUIRE(received == sent.load());
  REQUIRE(pool->counts().refused == static_cast<std::int64_t>(refused.load()));
  REQUIRE(pool->counts().completed + pool->counts().refused == kThreads * std::int64_t{kRounds});
  REQUIRE(pool->counts().allocated <= 4);
  REQUIRE(pool->counts().lent == 0);
}

}  // namespace
}  // namespace sluice::cupti
