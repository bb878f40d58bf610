#include "core/platform/burst_credit.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/platform/flow_network.h"

namespace sluice::platform {
namespace {

constexpr LinkId kDrive{0};
constexpr LinkId kHost{1};

// 1 byte a nanosecond; the first 1000 bytes that are written after idling come four times as fast.
Link drive() {
  return {.name = "drive",
          .read_bytes_per_s = 1e9,
          .write_bytes_per_s = 1e9,
          .write_burst = {.size_bytes = 1000, .bytes_per_s = 4e9}};
}

TimeNs write_ends_ns(FlowNetwork& network, std::int64_t bytes, TimeNs now_ns) {
  const std::vector<LinkId> route{kDrive};
  network.start({.route = route, .direction = Direction::write, .size_bytes = bytes}, now_ns);
  const TimeNs end_ns = network.next_completion_ns();
  std::vector<FlowNetwork::Completion> completed;
  network.advance(end_ns, completed);
  return end_ns;
}

TEST_CASE("what comes after idling is faster, up to the burst's size") {
  FlowNetwork network(std::vector{drive()});
  // 1000 bytes at 4 and 2000 at 1.
  CHECK(write_ends_ns(network, 3000, 0) == 2250);
  // At once after it there is no credit left.
  CHECK(write_ends_ns(network, 400, 2250) == 2650);
  // 100 ns of idling bring 100 bytes back, not more than was there at first.
  CHECK(write_ends_ns(network, 400, 2750) == 3075);
  CHECK(write_ends_ns(network, 2000, 100'000) == 101'250);
}

TEST_CASE("the other direction has no part in it") {
  FlowNetwork network(std::vector{drive()});
  const std::vector<LinkId> route{kDrive};
  network.start({.route = route, .direction = Direction::read, .size_bytes = 3000}, 0);
  CHECK(network.next_completion_ns() == 3000);
}

TEST_CASE("a small flow leaves the rest of the credit to the next") {
  FlowNetwork network(std::vector{drive()});
  CHECK(write_ends_ns(network, 400, 0) == 100);
  CHECK(write_ends_ns(network, 400, 100) == 200);
  CHECK(write_ends_ns(network, 400, 200) == 450);  // 200 at 4, 200 at 1
}

TEST_CASE("credit does not come back while flows are under way") {
  FlowNetwork network(std::vector{drive()});
  const std::vector<LinkId> route{kDrive};
  const FlowRequest long_one{.route = route, .direction = Direction::write, .size_bytes = 11'000};
  network.start(long_one, 0);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(9000, completed);
  CHECK(completed.empty());
  // Both share the drive; the second gets nothing at the burst's rate: 1250 bytes are left of the
  // first, so the second's 500 take 1000 ns.
  network.start({.route = route, .direction = Direction::write, .size_bytes = 500}, 9000);
  CHECK(network.next_completion_ns() == 10'000);
}

TEST_CASE("a link with a wider credit on the same route changes nothing") {
  Link wide = drive();
  wide.write_burst.size_bytes = 1'000'000;
  BurstCredit alone(std::vector{drive()});
  BurstCredit both(std::vector{drive(), wide});
  const std::vector<LinkId> one{kDrive}, two{kDrive, kHost};
  const double expected = alone.begin(one, Direction::write, 3000, 0);
  CHECK(expected == 2250);
  CHECK(both.begin(two, Direction::write, 3000, 0) == expected);
}

}  // namespace
}  // namespace sluice::platform
