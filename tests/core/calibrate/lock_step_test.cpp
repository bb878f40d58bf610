#include "core/calibrate/lock_step.h"

#include <catch2/catch.hpp>
#include <thread>

#include "core/calibrate/processor_toll.h"

namespace sluice::calibrate {
namespace {

TEST_CASE("computing in lock step takes no less than what is computed") {
  CHECK(lock_step_seconds(1, 0.02) >= 0.02);
  // One processor computes for one thread at a time.
  const int processor_count = static_cast<int>(std::thread::hardware_concurrency());
  REQUIRE(processor_count > 0);
  CHECK(lock_step_seconds(2 * processor_count, 0.02) >= 0.9 * 2 * 0.02);
}

TEST_CASE("transfers' toll is measured beside what was moved") {
  auto load = DriveLoad::make();
  REQUIRE(load.ok());
  auto file = TestFile::create(".", 8 << 20);
  REQUIRE(file.ok());
  const std::array<const TestFile*, 1> files = {&*file};
  REQUIRE(load->fill(files).ok());
  const TollOptions options{
      .thread_count = 2, .pair_count = 3, .seconds = 0.05, .inflight_bytes = 1 << 20};
  const auto toll = measure_toll(*load, files, options);
  REQUIRE(toll.ok());
  CHECK(toll->longer.count == 3);
  CHECK(toll->bytes_per_s > 0);
  // Chance, or more than those transfers would take all of the processors' time.
  CHECK((toll->processor_bytes_per_s == 0 || toll->processor_bytes_per_s > toll->bytes_per_s));
}

}  // namespace
}  // namespace sluice::calibrate
