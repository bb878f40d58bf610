#include "core/simulate/rank_machine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/units.h"

namespace sluice::simulate {

using shard::Collective;
using shard::CollectiveCost;
using shard::CollectiveUse;
using shard::Purpose;
using shard::StepShape;

RankMachine::RankMachine(const platform::Platform& cluster_platform, const StepShape& step,
                         const shard::Triple& triple)
    : platform_(cluster_platform),
      step_(step),
      triple_(triple),
      update_ns_(shard::update_ns(*cluster_platform.cluster, step, triple)) {
  CHECK(platform_.cluster.has_value());
  const platform::Cluster& cluster = *platform_.cluster;
  links_ = shard::add_cluster_links(platform_);
  for (const CollectiveUse& use : shard::step_collectives(step_, triple_, cluster.mesh)) {
    if (use.collective == Collective::all_gather || use.collective == Collective::reduce_scatter) {
      continue;  // by layer
    }
    const CollectiveCost cost =
        shard::collective_cost(cluster, use.collective, use.size_bytes, use.group);
    ways_.emplace(std::pair(use.purpose, use.size_bytes),
                  make_way(platform::collective_name(use.collective), cost));
  }
  if (triple_.parameters.size() == 1) return;
  for (const auto modules : step_.layers()) {
    gathers_.push_back(layer_way(Collective::all_gather, modules));
    scatters_.push_back(layer_way(Collective::reduce_scatter, modules));
  }
}

RankMachine::Way RankMachine::make_way(std::string name, const CollectiveCost& cost) {
  const double bytes_per_s = cost.is_measured ? static_cast<double>(cost.edge_bytes) / cost.seconds
                                              : shard::kUnboundedBandwidth;
  const platform::LinkId own =
      shard::add_link(platform_, std::move(name), bytes_per_s, cost.latency_ns);
  return {shard::route_over(links_, own, cost), cost.edge_bytes};
}

RankMachine::Way RankMachine::layer_way(Collective collective,
                                        std::span<const std::int64_t> modules) {
  CollectiveCost sum;
  for (const std::int64_t elements : modules) {
    const std::int64_t size_bytes =
        bytes_of(step_.precision) * round_up(elements, triple_.parameters.size());
    const CollectiveCost cost = shard::collective_cost(*platform_.cluster, collective, size_bytes,
                                                       shard::parameter_group(triple_));
    const CollectiveCost before = std::exchange(sum, cost);
    sum.edge_bytes += before.edge_bytes;
    sum.latency_ns += before.latency_ns;
    sum.seconds += before.seconds;
  }
  return make_way(platform::collective_name(collective), sum);
}

const RankMachine::Way& RankMachine::way(Purpose purpose, std::int64_t size_bytes) const {
  const auto found = ways_.find(std::pair(purpose, size_bytes));
  CHECK(found != ways_.end());
  return found->second;
}

runtime::Operation SimulatedRank::forward(LayerId layer) {
  return computing(stages::Stage::forward, layer,
                   costs_[static_cast<std::size_t>(index_of(layer))].forward_ns);
}

runtime::Operation SimulatedRank::backward(LayerId layer) {
  return computing(stages::Stage::backward, layer,
                   costs_[static_cast<std::size_t>(index_of(layer))].backward_ns);
}

runtime::Operation SimulatedRank::gather(LayerId layer) {
  return sending(stages::Stage::all_gather, layer, machine_.gather(layer));
}

runtime::Operation SimulatedRank::reduce_scatter(LayerId layer) {
  return sending(stages::Stage::reduce_scatter, layer, machine_.scatter(layer));
}

runtime::Operation SimulatedRank::all_reduce(std::int32_t bucket, Purpose purpose) {
  const StepShape& step = machine_.step();
  const std::int64_t held_bytes =
      bytes_of(step.precision) * shard::held_elements(step, machine_.triple());
  const std::int64_t size_bytes =
      std::min(step.bucket_bytes, held_bytes - bucket * step.bucket_bytes);
  return sending(stages::Stage::all_reduce, kNoLayer, machine_.way(purpose, size_bytes));
}

runtime::Operation SimulatedRank::update() {
  return computing(stages::Stage::update, kNoLayer, machine_.update_ns());
}

runtime::Operation SimulatedRank::broadcast() {
  const StepShape& step = machine_.step();
  const std::int64_t size_bytes =
      bytes_of(step.precision) * shard::owned_elements(step, machine_.triple());
  return sending(stages::Stage::broadcast, kNoLayer, machine_.way(Purpose::share, size_bytes));
}

runtime::Operation SimulatedRank::computing(stages::Stage stage, LayerId layer,
                                            TimeNs dur_ns) const {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.cost.engine = machine_.platform().compute_engine;
  operation.cost.engine_dur_ns = dur_ns;
  return operation;
}

runtime::Operation SimulatedRank::sending(stages::Stage stage, LayerId layer,
                                          const RankMachine::Way& way) const {
  runtime::Operation operation;
  operation.runtime = &runtime_;
  operation.label.stage = stage;
  operation.label.layer = layer;
  operation.label.size_bytes = way.edge_bytes;
  operation.cost.route = way.route;
  return operation;
}

}  // namespace sluice::simulate
