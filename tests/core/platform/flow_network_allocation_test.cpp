// Holds the network to its word that it allocates nothing once it has seen its largest number of
// flows.

#include <catch2/catch.hpp>
#include <vector>

#include "core/platform/flow_network.h"
#include "tests/allocation_count.h"

namespace sluice::platform {
namespace {

// Keeps 100 flows under way on ten drives behind one link, all with latency.
void run_flows(FlowNetwork& network, int completion_count, TimeNs& now_ns,
               std::vector<FlowNetwork::Completion>& completed) {
  int started = 0;
  const auto start_one = [&] {
    const LinkId route[] = {LinkId{0}, LinkId{1 + started % 10}};
    network.start({.route = route,
                   .direction = started % 3 == 0 ? Direction::write : Direction::read,
                   .size_bytes = 100'000 + 1000 * (started % 17),
                   .chunk_bytes = 65536},
                  now_ns);
    ++started;
  };
  while (network.active_count() < 100) start_one();
  for (int done = 0; done < completion_count;) {
    now_ns = network.next_completion_ns();
    completed.clear();
    network.advance(now_ns, completed);
    for (std::size_t i = 0; i < completed.size(); ++i, ++done) start_one();
  }
}

TEST_CASE("a flow network in steady state allocates nothing") {
  std::vector<Link> links{
      {.name = "host", .read_bytes_per_s = 8e9, .write_bytes_per_s = 8e9, .latency_ns = 5000}};
  for (int i = 0; i < 10; ++i) {
    links.push_back({.name = "drive",
                     .read_bytes_per_s = 3e9,
                     .write_bytes_per_s = 1.65e9,
                     .latency_ns = 80'000,
                     .duplex = Duplex::half,
                     .chunk_curve = {{4096, 1e8, 1e8}, {1 << 20, 3e9, 1.65e9}}});
  }
  FlowNetwork network(links);
  std::vector<FlowNetwork::Completion> completed;
  completed.reserve(200);
  TimeNs now_ns = 0;
  run_flows(network, 1000, now_ns, completed);
  const std::int64_t before = allocation_count();
  run_flows(network, 2000, now_ns, completed);
  const std::int64_t allocated = allocation_count() - before;
  CHECK(allocated == 0);
  CHECK(before > 0);  // the counter counts
}

}  // namespace
}  // namespace sluice::platform
