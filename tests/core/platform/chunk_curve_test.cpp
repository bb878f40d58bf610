#include "core/platform/chunk_curve.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace sluice::platform {
namespace {

Link link_with_curve() {
  return {.name = "drive",
          .read_bytes_per_s = 4000,
          .write_bytes_per_s = 400,
          .chunk_curve = {{1000, 1000, 100}, {100'000, 3000, 300}, {400'000, 4000, 400}}};
}

TEST_CASE("a chunk curve gives its points, and the nearest one outside them") {
  const Link link = link_with_curve();
  CHECK(chunk_bandwidth(link, Direction::read, 1000) == 1000);
  CHECK(chunk_bandwidth(link, Direction::write, 100'000) == 300);
  CHECK(chunk_bandwidth(link, Direction::read, 1) == 1000);
  CHECK(chunk_bandwidth(link, Direction::write, 1'000'000'000) == 400);
}

TEST_CASE("between its points a chunk curve is linear over the logarithm of the size") {
  const Link link = link_with_curve();
  CHECK(chunk_bandwidth(link, Direction::read, 10'000) == Approx(2000).epsilon(1e-12));
  CHECK(chunk_bandwidth(link, Direction::write, 200'000) == Approx(350).epsilon(1e-12));
}

TEST_CASE("a link without a chunk curve caps nothing") {
  CHECK(std::isinf(chunk_bandwidth(Link{.name = "host"}, Direction::read, 4096)));
}

}  // namespace
}  // namespace sluice::platform
