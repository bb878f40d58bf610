#include "core/platform/flow_network.h"

#include <catch2/catch.hpp>
#include <vector>

namespace sluice::platform {
namespace {

using Completions = std::vector<std::pair<std::int64_t, TimeNs>>;

constexpr LinkId kA{0};
constexpr LinkId kB{1};
constexpr LinkId kC{2};

Link link(double read, double write, Duplex duplex = Duplex::full, TimeNs latency_ns = 0) {
  return {.name = "link",
          .read_bytes_per_s = read,
          .write_bytes_per_s = write,
          .latency_ns = latency_ns,
          .duplex = duplex};
}

FlowId start(FlowNetwork& network, std::vector<LinkId> route, Direction direction,
             std::int64_t bytes, TimeNs now_ns = 0) {
  return network.start({.route = route, .direction = direction, .size_bytes = bytes}, now_ns);
}

// Runs until idle, going from completion to completion as a simulated clock does.
Completions drain(FlowNetwork& network) {
  Completions all;
  std::vector<FlowNetwork::Completion> completed;
  for (TimeNs next = network.next_completion_ns(); next != FlowNetwork::kNever;
       next = network.next_completion_ns()) {
    completed.clear();
    network.advance(next, completed);
    REQUIRE(!completed.empty());
    for (const auto& completion : completed) {
      CHECK(completion.at_ns == next);
      all.emplace_back(static_cast<std::int64_t>(completion.flow), completion.at_ns);
    }
  }
  CHECK(network.active_count() == 0);
  return all;
}

TEST_CASE("a flow alone has the whole link") {
  FlowNetwork network(std::vector{link(2e9, 1e9)});
  const FlowId flow = start(network, {kA}, Direction::read, 4000);
  CHECK(network.rate_bytes_per_s(flow) == 2e9);
  CHECK(network.utilisation(kA, Direction::read) == 1);
  CHECK(network.utilisation(kA, Direction::write) == 0);
  CHECK(drain(network) == Completions{{0, 2000}});
  CHECK(network.rate_bytes_per_s(flow) == 0);
  CHECK(network.utilisation(kA, Direction::read) == 0);
}

TEST_CASE("a toll leaves others of its link what is left, and no more once it is paid") {
  FlowNetwork network(std::vector{link(1e9, 1e9), link(10e9, 10e9)});
  const FlowId paying = network.start({.route = std::vector{kA},
                                       .direction = Direction::write,
                                       .size_bytes = 1000,
                                       .toll_link = kB,
                                       .toll = 2.5},
                                      0);
  const FlowId other = start(network, {kB}, Direction::read, 10'000);
  CHECK(network.rate_bytes_per_s(paying) == 1e9);
  CHECK(network.rate_bytes_per_s(other) == 7.5e9);
  CHECK(network.utilisation(kB, Direction::read) == 1);
  CHECK(drain(network) == Completions{{0, 1000}, {1, 1250}});
}

TEST_CASE("a flow whose toll is all there is goes no faster than it can pay") {
  FlowNetwork network(std::vector{link(8e9, 8e9), link(1e9, 1e9)});
  const FlowId paying = network.start({.route = std::vector{kA},
                                       .direction = Direction::read,
                                       .size_bytes = 1000,
                                       .toll_link = kB,
                                       .toll = 0.5},
                                      0);
  CHECK(network.rate_bytes_per_s(paying) == 2e9);
  CHECK(drain(network) == Completions{{0, 500}});
}

TEST_CASE("two flows share a link, and the longer one has it alone when the shorter is done") {
  FlowNetwork network(std::vector{link(2e9, 2e9)});
  const FlowId small = start(network, {kA}, Direction::read, 1000);
  const FlowId large = start(network, {kA}, Direction::read, 3000);
  CHECK(network.rate_bytes_per_s(small) == 1e9);
  CHECK(network.rate_bytes_per_s(large) == 1e9);
  CHECK(drain(network) == Completions{{0, 1000}, {1, 2000}});
}

TEST_CASE("a flow that joins slows down the one under way from then on") {
  FlowNetwork network(std::vector{link(1e9, 1e9)});
  start(network, {kA}, Direction::write, 2000, 5000);
  CHECK(network.next_completion_ns() == 7000);
  start(network, {kA}, Direction::write, 500, 6000);
  CHECK(drain(network) == Completions{{1, 7000}, {0, 7500}});
}

TEST_CASE("the directions of a full-duplex link do not touch each other") {
  FlowNetwork network(std::vector{link(3e9, 1e9)});
  start(network, {kA}, Direction::read, 3000);
  start(network, {kA}, Direction::write, 1000);
  CHECK(drain(network) == Completions{{0, 1000}, {1, 1000}});
}

TEST_CASE("the directions of a half-duplex link share its time") {
  FlowNetwork network(std::vector{link(3e9, 1.5e9, Duplex::half)});
  const FlowId read = start(network, {kA}, Direction::read, 2000);
  const FlowId write = start(network, {kA}, Direction::write, 1000);
  // Equal rates r with r / 3e9 + r / 1.5e9 = 1.
  CHECK(network.rate_bytes_per_s(read) == Approx(1e9).epsilon(1e-12));
  CHECK(network.rate_bytes_per_s(write) == Approx(1e9).epsilon(1e-12));
  CHECK(network.utilisation(kA, Direction::read) == Approx(1.0 / 3).epsilon(1e-12));
  CHECK(network.utilisation(kA, Direction::write) == Approx(2.0 / 3).epsilon(1e-12));
  CHECK(drain(network) == Completions{{1, 1000}, {0, 1334}});
}

TEST_CASE("read and write times add up on a half-duplex link, whatever their order") {
  // 3000 bytes at 3e9 and 3000 at 1.5e9: 1 us and 2 us of the drive's time.
  FlowNetwork network(std::vector{link(3e9, 1.5e9, Duplex::half)});
  for (int i = 0; i < 3; ++i) {
    start(network, {kA}, Direction::read, 1000);
    start(network, {kA}, Direction::write, 1000);
  }
  CHECK(drain(network).back().second == 3000);
}

TEST_CASE("a chunk curve caps one flow, and what it leaves goes to the others") {
  Link drive = link(3e9, 3e9);
  drive.chunk_curve = {{4096, 0.5e9, 0.25e9}, {1 << 20, 3e9, 3e9}};
  FlowNetwork network(std::vector{drive});
  const std::vector<LinkId> route{kA};
  const FlowId capped = network.start({.route = route, .size_bytes = 1000, .chunk_bytes = 4096}, 0);
  CHECK(network.rate_bytes_per_s(capped) == 0.5e9);
  const FlowId free = start(network, {kA}, Direction::read, 1000);
  CHECK(network.rate_bytes_per_s(capped) == 0.5e9);
  CHECK(network.rate_bytes_per_s(free) == 2.5e9);
  CHECK(drain(network) == Completions{{1, 400}, {0, 2000}});
}

TEST_CASE("latency comes first and takes no bandwidth") {
  FlowNetwork network(std::vector{link(1e9, 1e9, Duplex::full, 100), link(1e9, 1e9)});
  start(network, {kB}, Direction::read, 1000);
  const std::vector<LinkId> route{kA, kB};
  const FlowId late =
      network.start({.route = route, .size_bytes = 1000, .extra_latency_ns = 400}, 0);
  CHECK(network.rate_bytes_per_s(late) == 0);
  CHECK(network.utilisation(kA, Direction::read) == 0);
  CHECK(network.active_count() == 2);
  // 500 bytes alone until 500 ns, then half the link each.
  CHECK(network.next_completion_ns() == 1500);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(600, completed);
  CHECK(completed.empty());
  CHECK(network.rate_bytes_per_s(late) == 0.5e9);
  CHECK(drain(network) == Completions{{0, 1500}, {1, 2000}});
}

TEST_CASE("the next completion is exact although flows join before it") {
  FlowNetwork network(std::vector{link(1e9, 1e9)});
  const std::vector<LinkId> route{kA};
  network.start({.route = route, .size_bytes = 1000}, 0);
  for (const TimeNs latency_ns : {200, 400, 600})
    network.start({.route = route, .size_bytes = 1000, .extra_latency_ns = latency_ns}, 0);
  // 200 alone, 100 of two, 67 of three, the other 633 at a quarter of the link.
  CHECK(network.next_completion_ns() == 600 + 4 * 633 + 2);
  CHECK(drain(network).size() == 4);
}

TEST_CASE("each flow is held back by its own bottleneck only") {
  // A: 10, B: 4, C: 2. Flow 0 crosses all, 1 crosses A and B, 2 crosses A.
  FlowNetwork network(std::vector{link(10e9, 1e9), link(4e9, 1e9), link(2e9, 1e9)});
  const FlowId all = start(network, {kA, kB, kC}, Direction::read, 1'000'000);
  const FlowId two = start(network, {kA, kB}, Direction::read, 1'000'000);
  const FlowId one = start(network, {kA}, Direction::read, 1'000'000);
  CHECK(network.rate_bytes_per_s(all) == 2e9);
  CHECK(network.rate_bytes_per_s(two) == 2e9);
  CHECK(network.rate_bytes_per_s(one) == 6e9);
  CHECK(network.utilisation(kA, Direction::read) == 1);
}

TEST_CASE("ten drives fill a shared link that four would fill") {
  std::vector<Link> links{link(8e9, 8e9)};
  for (int i = 0; i < 10; ++i) links.push_back(link(3e9, 1.65e9, Duplex::half));
  FlowNetwork network(links);
  for (int i = 1; i <= 10; ++i) start(network, {kA, LinkId{i}}, Direction::read, 800'000);
  CHECK(network.utilisation(LinkId{3}, Direction::read) == Approx(0.8 / 3));
  const Completions completions = drain(network);
  CHECK(completions.front().second == 1'000'000);
  CHECK(completions.back().second == 1'000'000);
}

TEST_CASE("flows without bytes or without a route complete after their latency") {
  FlowNetwork network(std::vector{link(1e9, 1e9, Duplex::full, 70)});
  const std::vector<LinkId> route{kA};
  network.start({.route = route, .size_bytes = 0}, 10);
  network.start({.route = {}, .size_bytes = 1 << 30, .extra_latency_ns = 50}, 10);
  network.start({.route = {}}, 10);
  CHECK(network.next_completion_ns() == 10);
  CHECK(network.active_count() == 3);
  CHECK(drain(network) == Completions{{2, 10}, {1, 60}, {0, 80}});
}

TEST_CASE("an idle network never completes anything") {
  FlowNetwork network(std::vector{link(1e9, 1e9)});
  CHECK(network.next_completion_ns() == FlowNetwork::kNever);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(1'000'000'000, completed);
  CHECK(completed.empty());
}

TEST_CASE("one long advance hands out every completion with its own time") {
  FlowNetwork network(std::vector{link(2e9, 2e9)});
  start(network, {kA}, Direction::read, 3000);
  start(network, {kA}, Direction::read, 1000);
  start(network, {kA}, Direction::read, 1000);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(1'000'000, completed);
  REQUIRE(completed.size() == 3);
  CHECK(completed[0].flow == FlowId{1});
  CHECK(completed[0].at_ns == 1500);
  CHECK(completed[1].flow == FlowId{2});
  CHECK(completed[1].at_ns == 1500);
  CHECK(completed[2].at_ns == 2500);
}

TEST_CASE("completions that a start runs past are handed out by the next advance") {
  FlowNetwork network(std::vector{link(1e9, 1e9)});
  start(network, {kA}, Direction::read, 1000);
  const FlowId second = start(network, {kA}, Direction::read, 1000, 5000);
  CHECK(network.rate_bytes_per_s(second) == 1e9);  // the first is long gone
  CHECK(network.next_completion_ns() == 1000);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(5000, completed);
  REQUIRE(completed.size() == 1);
  CHECK(completed[0].at_ns == 1000);
  CHECK(drain(network) == Completions{{1, 6000}});
}

TEST_CASE("a completion is the first whole nanosecond at which all bytes have arrived") {
  FlowNetwork network(std::vector{link(3e9, 7e9)});
  start(network, {kA}, Direction::read, 1000);   // 333.3 ns
  start(network, {kA}, Direction::write, 7000);  // 1000 ns
  CHECK(drain(network) == Completions{{0, 334}, {1, 1000}});
}

TEST_CASE("a hundred thousand flows one after another do not drift") {
  // 4096 bytes at 2.56e9 are 1600 ns exactly; at a clock reading of months.
  constexpr TimeNs kBoot = 10'000'000'000'000'000;
  FlowNetwork network(std::vector{link(2.56e9, 1e9), link(3e9, 3e9, Duplex::half)});
  start(network, {kB}, Direction::read, std::int64_t{3} << 30, kBoot);  // all the while
  TimeNs now_ns = kBoot;
  std::vector<FlowNetwork::Completion> completed;
  for (int i = 0; i < 100'000; ++i) {
    start(network, {kA}, Direction::read, 4096, now_ns);
    now_ns = network.next_completion_ns();
    network.advance(now_ns, completed);
  }
  CHECK(completed.size() == 100'000);
  CHECK(now_ns == kBoot + 100'000 * 1600);
  CHECK(drain(network) == Completions{{0, kBoot + (std::int64_t{1} << 30)}});
}

TEST_CASE("a flow whose rate changes a hundred thousand times moves every byte") {
  // Together the two kinds of flow keep the link full, so its bytes set the end.
  FlowNetwork network(std::vector{link(1e9, 1e9)});
  constexpr std::int64_t kSmall = 700;
  start(network, {kA}, Direction::read, 1'000'000'000);
  TimeNs now_ns = 0;
  std::vector<FlowNetwork::Completion> completed;
  for (int i = 0; i < 50'000; ++i) {
    start(network, {kA}, Direction::read, kSmall, now_ns);
    now_ns = network.next_completion_ns();
    CHECK(now_ns == (i + 1) * 2 * kSmall);
    network.advance(now_ns, completed);
  }
  CHECK(drain(network) == Completions{{0, 1'000'000'000 + 50'000 * kSmall}});
}

TEST_CASE("a flow too slow for the clock to see its end is still under way, not lost") {
  FlowNetwork network(std::vector{link(1, 1)});
  start(network, {kA}, Direction::read, std::int64_t{1} << 62);
  CHECK(network.next_completion_ns() < FlowNetwork::kNever);
  CHECK(network.next_completion_ns() > 1'000'000'000'000'000'000);
  std::vector<FlowNetwork::Completion> completed;
  network.advance(1'000'000'000'000'000'000, completed);
  CHECK(completed.empty());
  CHECK(network.active_count() == 1);
}

TEST_CASE("a network that was moved goes on where it was") {
  FlowNetwork first(std::vector{link(1e9, 1e9)});
  start(first, {kA}, Direction::read, 1000);
  FlowNetwork second = std::move(first);
  start(second, {kA}, Direction::read, 1000, 500);
  CHECK(drain(second) == Completions{{0, 1500}, {1, 2000}});
}

}  // namespace
}  // namespace sluice::platform
