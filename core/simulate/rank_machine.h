#pragma once
// A rank of a cluster, with its state in its memory, in simulated time: its accelerator, and the
// links that its collectives cross, as a platform; the operations of its step with their costs and
// no bytes.
//
// Thread contract: one thread.

#include <map>
#include <span>
#include <vector>

#include "core/plan/layer_cost.h"
#include "core/runtime/runtime.h"
#include "core/shard/cluster_links.h"

namespace sluice::simulate {

// The platform of a rank: that of the cluster, and behind its links those of the rank, of its node
// and of its leaf switch, and one for each kind and size of collective, which has its latency. A
// route lists a link as often as a collective crosses it (CollectiveCost).
class RankMachine {
 public:
  RankMachine(const platform::Platform& cluster_platform, const shard::StepShape& step,
              const shard::Triple& triple);

  const platform::Platform& platform() const { return platform_; }
  const shard::StepShape& step() const { return step_; }
  const shard::Triple& triple() const { return triple_; }
  TimeNs update_ns() const { return update_ns_; }

  struct Way {
    std::vector<platform::LinkId> route;
    std::int64_t edge_bytes;
  };
  // The modules of a layer, one after the other.
  const Way& gather(LayerId layer) const {
    return gathers_[static_cast<std::size_t>(index_of(layer))];
  }
  const Way& scatter(LayerId layer) const {
    return scatters_[static_cast<std::size_t>(index_of(layer))];
  }
  // A collective that step_collectives() has.
  const Way& way(shard::Purpose purpose, std::int64_t size_bytes) const;

 private:
  Way make_way(std::string name, const shard::CollectiveCost& cost);
  Way layer_way(shard::Collective collective, std::span<const std::int64_t> modules);

  platform::Platform platform_;
  shard::StepShape step_;
  shard::Triple triple_;
  TimeNs update_ns_;
  shard::ClusterLinks links_;
  std::vector<Way> gathers_;  // by layer, as the next; empty where parameters are whole
  std::vector<Way> scatters_;
  std::map<std::pair<shard::Purpose, std::int64_t>, Way> ways_;  // of all else
};

class SimulatedRank {
 public:
  // `costs`: of a micro-batch, by layer. All outlive it.
  SimulatedRank(runtime::Runtime& runtime, const RankMachine& machine,
                std::span<const plan::LayerCost> costs)
      : runtime_(runtime), machine_(machine), costs_(costs) {}

  runtime::Operation forward(LayerId layer);
  runtime::Operation backward(LayerId layer);
  runtime::Operation gather(LayerId layer);
  runtime::Operation reduce_scatter(LayerId layer);
  // Purpose::accumulate or reduce.
  runtime::Operation all_reduce(std::int32_t bucket, shard::Purpose purpose);
  runtime::Operation update();
  runtime::Operation broadcast();

 private:
  runtime::Operation computing(stages::Stage stage, LayerId layer, TimeNs dur_ns) const;
  runtime::Operation sending(stages::Stage stage, LayerId layer, const RankMachine::Way& way) const;

  runtime::Runtime& runtime_;
  const RankMachine& machine_;
  std::span<const plan::LayerCost> costs_;
};

}  // namespace sluice::simulate
