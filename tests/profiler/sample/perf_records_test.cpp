// Bytes of a perf ring as records, and bytes that are none.

#include "profiler/sample/perf_records.h"

#include <catch2/catch.hpp>
#include <random>
#include <span>

#include "tests/profiler/sample/made_records.h"

namespace sluice::sample {
namespace {

std::vector<PerfRecord> read(MadeRing& ring, std::size_t unread_bytes = 0) {
  std::vector<PerfRecord> records;
  REQUIRE(read_perf_records(ring.bytes(), records) == unread_bytes);
  return records;
}

TEST_CASE("a perf ring's records are read with their threads and times") {
  MadeRing ring;
  ring.add_sample(10, 11, 1000, {0x5000, 0x6000});
  ring.add_switch(10, 11, 2000, PERF_RECORD_MISC_SWITCH_OUT);
  ring.add_switch(10, 11, 3000, 0);
  ring.add_switch(10, 11, 4000, PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
  ring.add_life(PERF_RECORD_FORK, 10, 12, 11, 5000);
  ring.add_name(10, 12, 5500, "worker");
  ring.add_life(PERF_RECORD_EXIT, 10, 12, 11, 6000);
  ring.add_lost(42);
  const std::vector<PerfRecord> records = read(ring);
  REQUIRE(records.size() == 8);
  CHECK(records[0].kind == PerfKind::sample);
  CHECK(records[0].pid == 10);
  CHECK(records[0].tid == 11);
  CHECK(records[0].cpu == 3);
  CHECK(records[0].ts == 1000);
  CHECK(records[0].chain == std::vector<std::uint64_t>{0x5000, 0x6000});
  CHECK(records[1].kind == PerfKind::switched_out);
  CHECK(records[1].ts == 2000);
  CHECK(records[2].kind == PerfKind::switched_in);
  CHECK(records[3].kind == PerfKind::preempted);
  CHECK(records[4].kind == PerfKind::thread_begins);
  CHECK(records[4].tid == 12);
  CHECK(records[4].parent_tid == 11);
  CHECK(records[5].kind == PerfKind::name);
  CHECK(records[5].name == "worker");
  CHECK(records[6].kind == PerfKind::thread_ends);
  CHECK(records[6].ts == 6000);
  CHECK(records[7].kind == PerfKind::lost);
  CHECK(records[7].lost_count == 42);
}

TEST_CASE(
    "a chain without addresses is where the thread was, and addresses of the kernel are left "
    "out") {
  MadeRing ring;
  ring.add_sample(10, 11, 1000, {});
  ring.add_sample(10, 11, 2000,
                  {0x5000, static_cast<std::uint64_t>(PERF_CONTEXT_KERNEL), 0x77,
                   static_cast<std::uint64_t>(PERF_CONTEXT_USER), 0x6000});
  const std::vector<PerfRecord> records = read(ring);
  REQUIRE(records.size() == 2);
  CHECK(records[0].chain == std::vector<std::uint64_t>{7});
  CHECK(records[1].chain == std::vector<std::uint64_t>{0x5000, 0x6000});
}

TEST_CASE("records of kinds that nobody asked for are passed over") {
  MadeRing ring;
  ring.add_bytes(PERF_RECORD_MMAP2, 64);
  ring.add_switch(10, 11, 2000, 0);
  CHECK(read(ring).size() == 1);
}

TEST_CASE("a cut record ends the reading, with what came before it") {
  MadeRing whole;
  whole.add_switch(10, 11, 1000, 0);
  whole.add_sample(10, 11, 2000, {0x5000, 0x6000, 0x7000});
  for (std::size_t size = 0; size <= whole.bytes().size(); ++size) {
    std::vector<PerfRecord> records;
    const auto bytes = std::span<const std::byte>(whole.bytes()).first(size);
    const std::size_t unread = read_perf_records(bytes, records);
    INFO(size << " bytes");
    CHECK(unread <= size);
    CHECK(records.size() == (size < 32 ? 0u : size < whole.bytes().size() ? 1u : 2u));
  }
}

TEST_CASE("a record that says more than it has is none") {
  MadeRing ring;
  ring.add_sample(10, 11, 1000, {0x5000});
  const std::uint64_t count = std::uint64_t{1} << 60;  // of addresses
  std::memcpy(ring.bytes().data() + 40, &count, sizeof(count));
  CHECK(read(ring, ring.bytes().size()).empty());

  MadeRing short_one;
  short_one.add_bytes(PERF_RECORD_SWITCH, 4);
  CHECK(read(short_one, 12).empty());

  MadeRing of_size_0;
  of_size_0.add_switch(10, 11, 1000, 0);
  of_size_0.bytes()[6] = of_size_0.bytes()[7] = std::byte{0};
  CHECK(read(of_size_0, 32).empty());
}

TEST_CASE("any bytes are read or refused") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    MadeRing ring;
    ring.add_sample(10, 11, 1000, {0x5000, 0x6000});
    ring.add_name(10, 11, 1500, "name");
    ring.add_life(PERF_RECORD_FORK, 10, 12, 11, 2000);
    ring.add_lost(3);
    for (int change = 0; change < 4; ++change) {
      ring.bytes()[random() % ring.bytes().size()] = static_cast<std::byte>(random());
    }
    std::vector<PerfRecord> records;
    CHECK(read_perf_records(ring.bytes(), records) <= ring.bytes().size());
    for (const PerfRecord& record : records) CHECK(record.chain.size() <= kChainMax);
  }
}

}  // namespace
}  // namespace sluice::sample
