#pragma once
// A rank of a cluster in simulated time: its accelerator, and the links that its collectives cross,
// as a platform; the operations of its step with their costs and no bytes.
//
// Thread contract: one thread.

#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/runtime/runtime.h"
#include "core/shard/cluster_links.h"
#include "core/shard/rank_step.h"

namespace sluice::shard {

// How long a layer of one micro-batch is computed.
struct LayerTimes {
  std::vector<TimeNs> forward_ns;
  std::vector<TimeNs> backward_ns;
};

// The platform of a rank: that of the cluster, and behind its links those of the rank, of its node
// and of its leaf switch, and one for each kind and size of collective, which has its latency. A
// route lists a link as often as a collective crosses it (CollectiveCost).
class RankMachine {
 public:
  RankMachine(const platform::Platform& cluster_platform, const StepShape& step,
              const Triple& triple, StateTier state_tier = StateTier::memory);

  const platform::Platform& platform() const { return platform_; }
  const StepShape& step() const { return step_; }
  const Triple& triple() const { return triple_; }
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
  const Way& way(Purpose purpose, std::int64_t size_bytes) const;

 private:
  Way make_way(std::string name, const CollectiveCost& cost);
  Way layer_way(Collective collective, std::span<const std::int64_t> modules);

  platform::Platform platform_;
  StepShape step_;
  Triple triple_;
  TimeNs update_ns_;
  ClusterLinks links_;
  std::vector<Way> gathers_;  // by layer, as the next; empty where parameters are whole
  std::vector<Way> scatters_;
  std::map<std::pair<Purpose, std::int64_t>, Way> ways_;  // of all else
};

class SimulatedRank final : public RankOperations {
 public:
  SimulatedRank(runtime::Runtime& runtime, const RankMachine& machine, const LayerTimes& times)
      : runtime_(runtime), machine_(machine), times_(times) {}

  runtime::Operation forward(LayerId layer, std::int64_t micro_step) override;
  runtime::Operation backward(LayerId layer, std::int64_t micro_step) override;
  runtime::Operation gather(LayerId layer) override;
  runtime::Operation reduce_scatter(LayerId layer) override;
  runtime::Operation all_reduce(std::int32_t bucket, Purpose purpose) override;
  runtime::Operation update() override;
  runtime::Operation broadcast(std::int32_t owner) override;

 private:
  runtime::Operation computing(runtime::Stage stage, LayerId layer, TimeNs dur_ns) const;
  runtime::Operation sending(runtime::Stage stage, LayerId layer,
                             const RankMachine::Way& way) const;

  runtime::Runtime& runtime_;
  const RankMachine& machine_;
  const LayerTimes& times_;
};

}  // namespace sluice::shard
