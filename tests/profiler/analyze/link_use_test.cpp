#include "profiler/analyze/link_use.h"

#include <catch2/catch.hpp>

#include "tests/profiler/analyze/made_step.h"

namespace sluice::analyze {

TEST_CASE("a link's load is what it moved, of what it could have") {
  MadeStep made(100);
  made.add("state_read", 0, 40, {.device = 0, .subgroup = 0, .bytes = 30'000'000});
  made.add("state_read", 20, 60, {.device = 0, .subgroup = 1, .bytes = 30'000'000});
  const LinkUse use(made.data());
  REQUIRE(use.loads().size() == 1);
  const LinkLoad& load = use.loads()[0];
  CHECK(load.name == "csd0.drive");
  CHECK_FALSE(load.is_shared);
  CHECK(load.bytes == 60'000'000);
  CHECK(load.busy_ns == 60 * kMs);
  CHECK(load.bytes_per_s == Approx(1e9));
  CHECK(load.share == Approx(0.6));
}

TEST_CASE("of a transfer that is partly in the step, that part counts") {
  MadeStep made(100);
  made.add("state_write", 80, 120, {.device = 0, .subgroup = 0, .bytes = 40'000'000});
  const LinkUse use(made.data());
  CHECK(use.loads()[0].bytes == 20'000'000);
  CHECK(use.loads()[0].busy_ns == 20 * kMs);
}

TEST_CASE("on a half-duplex link both directions count") {
  MadeStep made(100, MadeStep::Drives::half_duplex);
  made.add("state_read", 0, 10, {.device = 0, .subgroup = 0});
  made.add("state_write", 10, 90, {.device = 0, .subgroup = 0});
  const LinkUse use(made.data());
  const auto fullest = use.fullest(*made.data().spans[0].track);
  REQUIRE(fullest.has_value());
  CHECK(fullest->name == "csd0.drive");
  CHECK_FALSE(use.can_read_beside(made.data().spans[1]));
}

TEST_CASE("a track that moves nothing has no fullest link") {
  MadeStep made(100);
  made.add("forward", 0, 100);
  const LinkUse use(made.data());
  CHECK(use.loads().empty());
  CHECK_FALSE(use.fullest(*made.data().spans[0].track).has_value());
}

}  // namespace sluice::analyze
