// Every device there is, against the contract of the seam, and what only some of them can do wrong.

#include "answering_csd.h"
#include "device_conformance.h"

using namespace sluice;
using namespace sluice::csd;

TEST_CASE("the emulated device is a CsdDevice") {
  EmulatedFactory factory(Payload::real);
  check_device(factory);
}

TEST_CASE("a device that answers from a thread of its own is a CsdDevice") {
  AnsweringFactory factory({});
  check_device(factory);
}

TEST_CASE("a device that answers late, in any order and twice is a CsdDevice") {
  AnsweringFactory factory({.seed = 3, .reorders = true, .notes_twice = true});
  check_device(factory);
}

TEST_CASE("devices on the processor take split state, whoever answers") {
  EmulatedFactory emulated(Payload::real);
  check_split_update(emulated);
  AnsweringFactory answering({.seed = 3, .reorders = true});
  check_split_update(answering);
}

TEST_CASE("without payload device memory is counted alone") {
  EmulatedMemory memory("csd0", 10 * kPageBytes, Payload::none);
  const auto buffer = memory.allocate(9 * kPageBytes, Placement::state);
  REQUIRE(buffer.ok());
  CHECK(buffer->bytes().empty());
  CHECK(memory.registrable_regions().empty());
  const auto refused = memory.allocate(2 * kPageBytes, Placement::state);
  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(refused.error().message(), Catch::Contains("csd0 has 41.0 kB of device memory"));
}

TEST_CASE("a device that never answers is given up by name") {
  AnsweringFactory factory({.unanswered = 0, .patience_ns = 20'000'000});
  DeviceBench bench(factory);
  const DeviceBuffer buffer = bench.allocate(kPageBytes);
  const std::vector<std::byte> bytes = random_bytes(40, 1);
  const Status status = bench.await(bench.device->sync_to_device(
      {stages::Stage::move_state, SubgroupId{3}}, bytes, {&buffer, 0}, std::ssize(bytes)));
  REQUIRE_FALSE(status.ok());
  CHECK_THAT(status.error().message(),
             Catch::Contains("move_state of subgroup 3 on device 0 was started and has not ended"));
}
