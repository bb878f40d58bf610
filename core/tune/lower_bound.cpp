#include "core/tune/lower_bound.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"

namespace sluice::tune {
namespace {

using model::Activations;
using platform::Direction;

constexpr auto kRead = static_cast<std::size_t>(Direction::read);
constexpr auto kWrite = static_cast<std::size_t>(Direction::write);
constexpr double kElementBytes = 4;  // without a rate of its own a checksum has "stage", fp32 each

double total(const simulate::ByPhase& seconds) {
  double sum = 0;
  for (const double phase : seconds) sum += phase;
  return sum;
}

// Seconds of the host's processor for the checksum of an activation byte, as a step charges it
// (core/activation/activation_carrier.cpp).
double summed_byte_seconds(const platform::Engine& host) {
  const auto checksum = host.rate.find("checksum");
  if (checksum != host.rate.end()) return 1 / checksum->second;
  const auto stage = host.rate.find("stage");
  return stage == host.rate.end() ? 0 : 1 / kElementBytes / stage->second;
}

// The share of activation bytes that crosses each link: drives have even parts of them, and so have
// accelerators.
std::vector<double> shares_of_links(const plan::RunPlan& plan) {
  std::vector<double> shares(plan.platform.links.size());
  const auto add = [&](std::span<const platform::LinkId> route, double share) {
    for (const platform::LinkId link : route) {
      shares[static_cast<std::size_t>(platform::index_of(link))] += share;
    }
  };
  const auto drive_count = static_cast<double>(plan.platform.devices.size());
  for (const platform::Device& device : plan.platform.devices) {
    add(device.host_route, 1 / drive_count);
  }
  const auto& accelerators = plan.platform.accelerator_routes;
  for (const auto& route : accelerators) add(route, 1 / static_cast<double>(accelerators.size()));
  return shares;
}

// A full-duplex link has a load each way, another one for both together; every activation byte goes
// both ways.
void add_loads(const std::string& name, const platform::Link& link, const simulate::LinkUse& use,
               double share, std::vector<StepLoad>& loads) {
  std::array<double, 2> base_seconds{};
  const std::array<double, 2> byte_seconds = {1 / link.read_bytes_per_s,
                                              1 / link.write_bytes_per_s};
  for (const auto& phase : use.size_bytes) {
    for (const std::size_t d : {kRead, kWrite}) {
      base_seconds[d] += static_cast<double>(phase[d]) * byte_seconds[d];
    }
  }
  if (link.duplex == platform::Duplex::half) {
    loads.push_back({name, base_seconds[kRead] + base_seconds[kWrite],
                     share * (byte_seconds[kRead] + byte_seconds[kWrite])});
    return;
  }
  loads.push_back({name + ", read", base_seconds[kRead], share * byte_seconds[kRead]});
  loads.push_back({name + ", write", base_seconds[kWrite], share * byte_seconds[kWrite]});
}

// Recomputing so many bytes' worth of layers, the cheapest first and the last one in part.
double recompute_seconds(const std::vector<LayerWorth>& sorted, double bytes) {
  double seconds = 0;
  for (const LayerWorth& layer : sorted) {
    const double freed = std::min(bytes, static_cast<double>(layer.kept_bytes));
    seconds += std::max(0.0, layer.benefit()) * freed;
    bytes -= freed;
  }
  return seconds;
}

LowerBound largest(const LayerProblem& problem, double compute_seconds, double moved_bytes) {
  LowerBound bound{compute_seconds, "compute kernels"};
  for (const StepLoad& load : problem.loads) {
    const double seconds = load.base_seconds + load.seconds_per_moved_byte * moved_bytes;
    if (seconds > bound.seconds) bound = {seconds, load.what};
  }
  return bound;
}

}  // namespace

Result<std::vector<StepLoad>> step_loads(plan::RunPlan kept) {
  kept.options.pipeline = offload::Pipeline::serial;
  ASSIGN_OR_RETURN(const simulate::SimulatedStep step, simulate::simulate_step(kept));
  const platform::Platform& platform = kept.platform;
  std::vector<StepLoad> loads;
  const std::vector<double> shares = shares_of_links(kept);
  for (std::size_t i = 0; i < platform.links.size(); ++i) {
    const platform::Link& link = platform.links[i];
    add_loads(platform::kind_of(platform, link.name) + " link", link, step.links[i], shares[i],
              loads);
  }
  for (std::size_t i = 0; i < platform.engines.size(); ++i) {
    const auto id = platform::EngineId{static_cast<std::int32_t>(i)};
    if (id == kept.platform.compute_engine) continue;  // its layers are the critical path
    StepLoad load{platform::kind_of(platform, platform.engines[i].name) + " kernels",
                  total(step.engines[i].busy_seconds), 0};
    if (id == platform.host_engine) {
      load.seconds_per_moved_byte = 2 * summed_byte_seconds(platform.engines[i]);
    }
    loads.push_back(std::move(load));
  }
  return loads;
}

double moved_byte_seconds(const plan::RunPlan& run, Direction direction) {
  const std::vector<double> shares = shares_of_links(run);
  double seconds = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const platform::Link& link = run.platform.links[i];
    const double rate =
        direction == Direction::read ? link.read_bytes_per_s : link.write_bytes_per_s;
    seconds = std::max(seconds, shares[i] / rate);
  }
  return std::max(seconds, summed_byte_seconds(run.platform.engine(run.platform.host_engine)));
}

LowerBound lower_bound(const LayerProblem& problem, std::int64_t surplus_bytes) {
  double kept_seconds = 0;
  std::vector<LayerWorth> sorted;
  for (const LayerWorth& layer : problem.layers) {
    kept_seconds += layer.compute_with(Activations::keep);
    if (layer.allowed.size() > 1) sorted.push_back(layer);
  }
  std::ranges::stable_sort(sorted, {}, &LayerWorth::benefit);
  const auto surplus = static_cast<double>(std::max<std::int64_t>(0, surplus_bytes));
  const auto at = [&](double moved_bytes) {
    return largest(problem, kept_seconds + recompute_seconds(sorted, surplus - moved_bytes),
                   moved_bytes);
  };
  // The more moves, the less is computed and the busier links are: the smallest of the larger of
  // the two is where they cross.
  double least = 0;
  double most = surplus;
  constexpr int kHalvings = 60;  // down to a byte
  for (int i = 0; i < kHalvings; ++i) {
    const double third = (most - least) / 3;
    const bool is_below = at(least + third).seconds <= at(most - third).seconds;
    (is_below ? most : least) = is_below ? most - third : least + third;
  }
  LowerBound found = at(least);
  for (const double moved : {0.0, surplus}) {
    if (at(moved).seconds < found.seconds) found = at(moved);
  }
  return found;
}

}  // namespace sluice::tune
