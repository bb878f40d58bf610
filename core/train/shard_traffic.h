#pragma once
// The data that ranks of a sharded run bring to one another in a step, each beside computing where
// shard_overlap says so (docs/sharding.md):
//
//   bring(layer)      a layer's parameters are those of the last update, and whole: their owners
//                     have sent them, and where ranks have parts of them they are gathered
//   reduce(layer)     a layer's gradients: each rank gets the sum of its part over all ranks, and
//                     the sums of squares of all blocks; the offload takes what it owns of it
//   share_updated()   each owner sends the parameters that it has updated, the lowest ones first
//
// A layer that was gathered goes after its forward and again after its backward. The embedding
// stays in between, since the head may use its tables, and so does the last layer, whose backward
// is next.
//
// Thread contract: the schedule's thread. settle() before it goes.

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/offload/parameter_pages.h"
#include "core/offload/parameter_source.h"
#include "core/runtime/sync.h"
#include "core/shard/overlaps.h"

namespace sluice::model {
struct FlatLayout;
}
namespace sluice::offload {
class Offload;
}
namespace sluice::shard {
struct RankShare;
}

namespace sluice::train {

class ShardGroups;

class ShardTraffic final : public offload::ParameterSource {
 public:
  struct Parts {  // all outlive it
    runtime::Runtime& runtime;
    ShardGroups& groups;
    const shard::RankShare& share;
    shard::Overlaps overlaps;
    const model::FlatLayout& layout;  // of the model
    offload::Offload& offload;
    // The parameters that are computed with, of the model, and this rank's part of them; without
    // gathers the same. Without payload they have their sizes and no memory.
    ParameterSpan parameters;
    ParameterSpan part;
  };
  explicit ShardTraffic(const Parts& parts);

  void begin_pass(offload::Pass pass) override;
  runtime::Task<Status> bring(LayerId layer) override;
  void done(LayerId layer) override;
  // Whoever brings a layer waits for it.
  runtime::Task<Status> finish_pass() override { co_return ok_status(); }
  bool comes_ahead() const override;
  // When the parameters of all owners were last there.
  TimeNs completed_ns() const override;

  // `whole`: the layer's gradients of this rank. Before the offload sends what it owns.
  runtime::Task<Status> reduce(LayerId layer, std::span<float> whole);
  // After an update that was applied, or a state that was loaded.
  void share_updated();
  // Until nothing is under way.
  runtime::Task<Status> settle();

  bool overlaps(shard::Overlap overlap) const { return parts_.overlaps.has(overlap); }

 private:
  runtime::Task<Status> share_all();
  runtime::Task<Status> wait_for_owners(LayerId layer);
  runtime::Operation sum_squares(LayerId layer, std::span<float> part);
  void give_back(LayerId layer);
  bool stays(LayerId layer) const;

  Parts parts_;
  std::unique_ptr<offload::ParameterPages> pages_;  // where layers are gathered
  std::vector<char> is_here_;                       // by layer
  offload::Pass pass_ = offload::Pass::forward;
  std::deque<runtime::Event> shared_;  // by state part
  TimeNs completed_ns_ = 0;
  runtime::TaskGroup shares_;
};

}  // namespace sluice::train
