// What a build without MPI has: one rank works, and being one of several is refused in words.

#include <catch2/catch.hpp>
#include <cstdlib>

#include "core/collective/open_ranks.h"

using namespace sluice;
using namespace sluice::collective;
using Catch::Matchers::Contains;

TEST_CASE("without MPI one rank works, and a launcher is told what to install") {
  unsetenv("OMPI_COMM_WORLD_SIZE");
  unsetenv("PMI_SIZE");
  unsetenv("PMIX_RANK");
  REQUIRE(launcher_variable() == nullptr);
  auto alone = open_ranks({});
  REQUIRE(alone.ok());
  REQUIRE((*alone)->close().ok());

  setenv("PMI_SIZE", "2", 1);
  REQUIRE(std::string(launcher_variable()) == "PMI_SIZE");
  const auto refused = open_ranks({});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::unsupported);
  CHECK_THAT(refused.error().message(), Contains("libopenmpi-dev, openmpi-bin"));
  REQUIRE(open_ranks({}, UseMpi::never).ok());
  unsetenv("PMI_SIZE");
  REQUIRE_FALSE(open_ranks({}, UseMpi::always).ok());
}
