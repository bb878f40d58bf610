// The network against reference_sharing.h on random links, routes, caps, tolls and joins.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "core/platform/chunk_curve.h"
#include "core/platform/flow_network.h"
#include "tests/core/platform/reference_sharing.h"

namespace sluice::platform {
namespace {

constexpr int kNetworkCount = 4000;

struct Request {
  std::vector<LinkId> route;
  Direction direction = Direction::read;
  std::int64_t size_bytes = 0;
  std::int64_t chunk_bytes = 0;
  TimeNs extra_latency_ns = 0;
  TimeNs start_ns = 0;
  LinkId toll_link{-1};
  double toll = 0;
};

struct Scenario {
  std::vector<Link> links;
  std::vector<Request> requests;  // in order of start
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  // Some values come up again and again, so that ties happen.
  double rate() {
    static constexpr double kRound[] = {1e9, 1e9, 2e9, 3e9, 1.65e9, 8e9};
    return one_in(2) ? kRound[below(6)] : 1e6 * std::pow(10.0, below(4000) / 1000.0);
  }
  std::int64_t size() {
    if (one_in(12)) return 0;
    return one_in(3) ? 1 << below(20) : 1 + below(1'000'000);
  }

 private:
  std::mt19937 engine_;
};

Link random_link(Random& random) {
  Link link{.name = "link",
            .read_bytes_per_s = random.rate(),
            .write_bytes_per_s = random.rate(),
            .latency_ns = random.one_in(2) ? 0 : random.below(2000),
            .duplex = random.one_in(2) ? Duplex::half : Duplex::full};
  if (random.one_in(3))
    link.chunk_curve = {{4096, 0.1 * random.rate(), 0.1 * random.rate()},
                        {1 << 20, random.rate(), random.rate()}};
  return link;
}

Scenario random_scenario(unsigned seed) {
  Random random(seed);
  Scenario scenario;
  const int link_count = 1 + random.below(8);
  for (int i = 0; i < link_count; ++i) scenario.links.push_back(random_link(random));
  TimeNs now_ns = 0;
  for (int i = 1 + random.below(20); i > 0; --i) {
    Request request;
    for (int l = 0; l < link_count; ++l)
      if (random.one_in(3)) request.route.push_back(LinkId{l});
    request.direction = random.one_in(2) ? Direction::read : Direction::write;
    request.size_bytes = random.size();
    request.chunk_bytes = random.one_in(2) ? 0 : 1 << (10 + random.below(13));
    request.extra_latency_ns = random.one_in(2) ? 0 : random.below(100'000);
    request.start_ns = now_ns;
    scenario.requests.push_back(request);
    if (random.one_in(4)) {
      request.toll_link = LinkId{random.below(link_count)};
      request.toll = std::pow(10.0, random.below(4000) / 1000.0 - 2);
    }
    if (random.one_in(2)) now_ns += random.below(300'000);
  }
  return scenario;
}

reference::Transfer transfer_of(const Scenario& scenario, const Request& request) {
  reference::Transfer transfer{.route = {},
                               .direction = request.direction,
                               .bytes = static_cast<long double>(request.size_bytes),
                               .cap = std::numeric_limits<long double>::infinity(),
                               .join_ns = request.start_ns + request.extra_latency_ns,
                               .toll_link = index_of(request.toll_link),
                               .toll = request.toll};
  for (const LinkId id : request.route) {
    const Link& link = scenario.links[static_cast<std::size_t>(index_of(id))];
    transfer.route.push_back(index_of(id));
    transfer.join_ns += link.latency_ns;
    if (request.chunk_bytes > 0) {
      const double cap = chunk_bandwidth(link, request.direction, request.chunk_bytes);
      transfer.cap = std::min(transfer.cap, static_cast<long double>(cap));
    }
  }
  return transfer;
}

FlowRequest flow_request(const Request& request) {
  return {.route = request.route,
          .direction = request.direction,
          .size_bytes = request.size_bytes,
          .chunk_bytes = request.chunk_bytes,
          .extra_latency_ns = request.extra_latency_ns,
          .toll_link = request.toll_link,
          .toll = request.toll};
}

// What one run of a scenario has shown.
struct Run {
  std::vector<FlowNetwork::Completion> completions;
  std::vector<std::vector<double>> rates;  // of every flow, after each event
  std::vector<TimeNs> rate_times_ns;
};

void check_utilisation(const Scenario& scenario, const FlowNetwork& network,
                       const std::vector<double>& rates) {
  for (std::size_t l = 0; l < scenario.links.size(); ++l) {
    const LinkId id{static_cast<std::int32_t>(l)};
    long double sums[2] = {0, 0};
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const Request& request = scenario.requests[i];
      if (std::find(request.route.begin(), request.route.end(), id) != request.route.end())
        sums[request.direction == Direction::write] += rates[i];
      if (request.toll_link == id) sums[0] += rates[i] * request.toll;
    }
    const Link& link = scenario.links[l];
    for (const Direction direction : {Direction::read, Direction::write}) {
      REQUIRE(reference::load(link, direction, sums[0], sums[1]) <= 1 + 1e-12L);
      const double expected = direction == Direction::read
                                  ? static_cast<double>(sums[0]) / link.read_bytes_per_s
                                  : static_cast<double>(sums[1]) / link.write_bytes_per_s;
      REQUIRE(network.utilisation(id, direction) == Approx(expected).epsilon(1e-9).margin(1e-15));
    }
  }
}

Run run(const Scenario& scenario) {
  Run result;
  FlowNetwork network(scenario.links);
  std::vector<FlowId> flows;
  const auto look = [&](TimeNs now_ns) {
    std::vector<double> rates;
    for (const FlowId flow : flows) rates.push_back(network.rate_bytes_per_s(flow));
    check_utilisation(scenario, network, rates);
    result.rates.push_back(std::move(rates));
    result.rate_times_ns.push_back(now_ns);
  };
  const auto advance_to = [&](TimeNs until_ns) {
    while (network.next_completion_ns() <= until_ns) {
      const TimeNs next_ns = network.next_completion_ns();
      if (next_ns == FlowNetwork::kNever) break;
      const std::size_t before = result.completions.size();
      network.advance(next_ns, result.completions);
      REQUIRE(result.completions.size() > before);  // the forecast was exact, not too early
      for (std::size_t i = before; i < result.completions.size(); ++i)
        REQUIRE(result.completions[i].at_ns == next_ns);  // and not too late
      look(next_ns);
    }
  };
  for (const Request& request : scenario.requests) {
    advance_to(request.start_ns);
    flows.push_back(network.start(flow_request(request), request.start_ns));
    look(request.start_ns);
  }
  advance_to(FlowNetwork::kNever);
  REQUIRE(network.active_count() == 0);
  return result;
}

// What a transfer takes a byte of one direction of a link, in that direction's bytes.
long double taken(const reference::Transfer& transfer, int link, Direction direction) {
  const bool crosses =
      transfer.direction == direction &&
      std::find(transfer.route.begin(), transfer.route.end(), link) != transfer.route.end();
  const bool pays = direction == Direction::read && transfer.toll_link == link;
  return (crosses ? 1 : 0) + (pays ? transfer.toll : 0);
}

// Every flow is at its cap, or takes of something that is full and of which nobody is faster.
void check_max_min(const Scenario& scenario, const std::vector<reference::Transfer>& transfers,
                   const std::vector<double>& rates) {
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (rates[i] == 0 || rates[i] >= transfers[i].cap * (1 - 1e-9L)) continue;
    bool held_back = false;
    for (int l = 0; l < static_cast<int>(scenario.links.size()); ++l) {
      const Link& link = scenario.links[static_cast<std::size_t>(l)];
      for (const Direction direction : {Direction::read, Direction::write}) {
        if (taken(transfers[i], l, direction) == 0) continue;
        long double sums[2] = {0, 0};
        double fastest = 0;
        for (std::size_t j = 0; j < rates.size(); ++j) {
          const long double read = taken(transfers[j], l, Direction::read);
          const long double write = taken(transfers[j], l, Direction::write);
          sums[0] += rates[j] * read;
          sums[1] += rates[j] * write;
          const bool competes = link.duplex == Duplex::half    ? read + write > 0
                                : direction == Direction::read ? read > 0
                                                               : write > 0;
          if (competes) fastest = std::max(fastest, rates[j]);
        }
        const auto load = reference::load(link, direction, sums[0], sums[1]);
        held_back |= load >= 1 - 1e-9L && rates[i] >= fastest * (1 - 1e-9);
      }
    }
    REQUIRE(held_back);
  }
}

void check_rates(const Scenario& scenario, const std::vector<reference::Transfer>& transfers,
                 const Run& result) {
  std::map<FlowId, TimeNs> done;
  for (const auto& completion : result.completions) done[completion.flow] = completion.at_ns;
  for (std::size_t k = 0; k < result.rates.size(); ++k) {
    const std::vector<double>& rates = result.rates[k];
    const TimeNs now_ns = result.rate_times_ns[k];
    std::vector<int> moving;
    for (int i = 0; i < static_cast<int>(rates.size()); ++i) {
      const auto& transfer = transfers[static_cast<std::size_t>(i)];
      if (!transfer.route.empty() && transfer.bytes > 0 && transfer.join_ns <= now_ns &&
          done.at(FlowId{i}) > now_ns)
        moving.push_back(i);
    }
    auto expected = reference::rates_of(scenario.links, transfers, moving);
    for (int i = 0; i < static_cast<int>(rates.size()); ++i) {
      const double rate = rates[static_cast<std::size_t>(i)];
      const auto wanted = static_cast<double>(expected.contains(i) ? expected[i] : 0);
      REQUIRE(std::abs(rate - wanted) <= 1e-9 * wanted);
    }
    check_max_min(scenario, transfers, rates);
  }
}

TEST_CASE("rates and completion times are those of a plain reference on random networks") {
  for (unsigned seed = 0; seed < kNetworkCount; ++seed) {
    INFO("seed " << seed);
    const Scenario scenario = random_scenario(seed);
    std::vector<reference::Transfer> transfers;
    for (const Request& request : scenario.requests)
      transfers.push_back(transfer_of(scenario, request));
    const Run result = run(scenario);

    const std::vector<TimeNs> expected = reference::completion_times(scenario.links, transfers);
    REQUIRE(result.completions.size() == expected.size());
    for (const auto& completion : result.completions)
      REQUIRE(completion.at_ns == expected[static_cast<std::size_t>(completion.flow)]);
    REQUIRE(std::is_sorted(result.completions.begin(), result.completions.end(),
                           [](const auto& a, const auto& b) {
                             return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.flow < b.flow;
                           }));
    check_rates(scenario, transfers, result);
  }
}

TEST_CASE("the same calls give the same times, however often time is looked at in between") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const Scenario scenario = random_scenario(seed);
    const Run first = run(scenario);
    const Run second = run(scenario);
    REQUIRE(first.rates == second.rates);  // to the last bit

    FlowNetwork restless(scenario.links);
    std::vector<FlowNetwork::Completion> completed;
    TimeNs now_ns = 0;
    for (const Request& request : scenario.requests) {
      for (; now_ns < request.start_ns; now_ns += 777) restless.advance(now_ns, completed);
      now_ns = request.start_ns;
      restless.start(flow_request(request), now_ns);
    }
    restless.advance(FlowNetwork::kNever - 1, completed);
    REQUIRE(completed.size() == first.completions.size());
    for (std::size_t i = 0; i < completed.size(); ++i) {
      REQUIRE(completed[i].flow == first.completions[i].flow);
      REQUIRE(completed[i].at_ns == first.completions[i].at_ns);
    }
  }
}

}  // namespace
}  // namespace sluice::platform
