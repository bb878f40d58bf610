// Shards, sums and what messages say, without any rank.

#include "core/collective/call.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/float16.h"
#include "checked_call.h"
#include "core/collective/detail/call_header.h"
#include "core/collective/rank_order_sum.h"
#include "core/collective/shard.h"

using namespace sluice;
using namespace sluice::collective;

TEST_CASE("shards cover all elements in order, and the first are longer by one") {
  for (std::int64_t parts = 1; parts <= 9; ++parts) {
    for (std::int64_t count = 0; count < 40; ++count) {
      std::int64_t next = 0;
      for (std::int64_t part = 0; part < parts; ++part) {
        const Shard shard = shard_of(count, parts, part);
        REQUIRE(shard.first == next);
        REQUIRE(shard.count == count / parts + (part < count % parts ? 1 : 0));
        next += shard.count;
      }
      REQUIRE(next == count);
    }
  }
}

TEST_CASE("shards of units are whole units, but for what is left at the end") {
  for (const std::int64_t unit : {2, 3, 16}) {
    for (std::int64_t parts = 1; parts <= 5; ++parts) {
      for (std::int64_t count = 0; count < 90; ++count) {
        std::int64_t next = 0;
        for (std::int64_t part = 0; part < parts; ++part) {
          const Shard shard = shard_of(count, parts, part, unit);
          REQUIRE(shard.first == next);
          REQUIRE((shard.count % unit == 0 || shard.first + shard.count == count));
          REQUIRE(shard.count <= shard_of(count, parts, 0, unit).count);
          next += shard.count;
        }
        REQUIRE(next == count);
      }
    }
  }
}

TEST_CASE(
    "a sum is the plain one in the order of the ranks, of every type, in place of any input") {
  const auto type =
      GENERATE(ElementType::bf16, ElementType::fp16, ElementType::fp32, ElementType::fp64);
  const std::int64_t count = 2500;  // more than two blocks
  const std::vector<int> ranks = {0, 1, 2, 3, 4};
  CallPlan plan;
  plan.type = type;
  plan.salt = 11;
  const auto bytes = static_cast<std::size_t>(element_bytes(type));
  for (std::size_t target = 0; target <= ranks.size(); ++target) {
    std::vector<std::vector<std::byte>> memory(ranks.size() + 1,
                                               std::vector<std::byte>(count * bytes));
    std::vector<const std::byte*> inputs;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint64_t bits = given_bits(plan, ranks[rank], i);
        std::memcpy(memory[rank].data() + i * bytes, &bits, bytes);
      }
      inputs.push_back(memory[rank].data());
    }
    sum_in_rank_order(type, inputs, memory[target].data(), count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t wanted = plain_sum_bits(plan, ranks, i);
      REQUIRE(std::memcmp(memory[target].data() + i * bytes, &wanted, bytes) == 0);
    }
  }
}

TEST_CASE("every fp16 and bf16 number is summed as the definition of the formats says") {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const std::array<std::uint16_t, 7> others = {0x0000, 0x8000, 0x3c01, 0x0001,
                                               0x7bff, 0x7c00, 0xfc00};
  for (const std::uint16_t other : others) {
    const std::vector<std::uint16_t> second(all.size(), other);
    const std::array inputs = {reinterpret_cast<const std::byte*>(all.data()),
                               reinterpret_cast<const std::byte*>(second.data())};
    for (const auto& [type, kind] : {std::pair(ElementType::fp16, Float16Kind::fp16),
                                     std::pair(ElementType::bf16, Float16Kind::bf16)}) {
      std::vector<std::uint16_t> sums(all.size());
      sum_in_rank_order(type, inputs, reinterpret_cast<std::byte*>(sums.data()),
                        static_cast<std::int64_t>(all.size()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float wanted = float_from_float16(kind, all[i]) + float_from_float16(kind, second[i]);
        if (std::isnan(wanted)) {
          REQUIRE(std::isnan(float_from_float16(kind, sums[i])));
        } else {
          REQUIRE(sums[i] == float16_from_float(kind, wanted));
        }
      }
    }
  }
}

TEST_CASE("a call reads as what, how much, for what") {
  std::vector<std::byte> memory(24);
  Call call;
  call.kind = Kind::broadcast;
  call.type = ElementType::bf16;
  call.out = memory;
  call.root = 3;
  call.label = {"parameters", LayerId{4}, 17};
  CHECK(call_text(call) ==
        "broadcast of 12 elements bf16 from rank 3 (parameters, layer 4, step 17)");
  CHECK(detail::header_text(detail::header_of(call, 1)) == call_text(call));
  CHECK(call_text({}) == "barrier (no label)");
  CHECK(ranks_text(std::array{5}) == "rank 5");
  CHECK(ranks_text(std::array{0, 2, 4}) == "ranks 0, 2, 4");
}

TEST_CASE("more elements than an int counts are refused in words") {
  // Only the sizes are looked at.
  const std::size_t size = std::size_t{1} << 31;
  std::byte* nowhere = nullptr;
  Call call;
  call.kind = Kind::all_reduce;
  call.type = ElementType::bf16;
  call.in = {nowhere, 2 * size};
  call.out = {nowhere, 2 * size};
  const Status status = check_call(call, std::array{0, 1}, 0);
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(),
             Catch::Matchers::Contains("at most 2147483647 elements go in one call"));
}
