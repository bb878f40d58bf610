#pragma once
// The parts of a training step besides the open run: the activations' places, the ranks' shares of
// the model, and the context of each step. Made anew with each new offload.
//
// Thread contract: the schedule's thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/offload/residual_file.h"

namespace sluice::activation {
class ActivationCarrier;
}
namespace sluice::model {
struct BuiltModel;
}
namespace sluice::platform {
enum class Direction : std::uint8_t;
}
namespace sluice::session {
class OpenRun;
}

namespace sluice::train {

class Ranks;
class ShardGroups;
class ShardTraffic;
struct StepContext;

class StepParts {
 public:
  struct Request {
    session::OpenRun& run;  // attached
    model::BuiltModel& built;
    Ranks* ranks = nullptr;         // null: this is the only rank
    ShardGroups* groups = nullptr;  // null: each rank has all of the model
  };
  // Errors: those of the activations' files, and of an accelerator that selects gradients.
  static Result<std::unique_ptr<StepParts>> make(const Request& request);
  ~StepParts();

  StepContext& context() { return *context_; }
  // Null: no activation is to leave memory.
  const activation::ActivationCarrier* activations() const;
  // All ranks have what they compute with, from a state that was made or loaded.
  Status share_parameters();
  // Until nothing of the last step is under way among the ranks.
  Status settle();
  // The residual of error feedback: in host memory, or where gradients are worked on.
  offload::ResidualPlace residual();

 private:
  explicit StepParts(const Request& request);
  Status attach_activations();
  Status make_activation_files();
  void attach_shards(ShardGroups& groups);
  void make_context(Ranks* ranks);
  Status prepare_gradient_work();
  Status bring_residual(platform::Direction direction, std::int64_t first,
                        std::span<std::byte> staging);

  session::OpenRun& run_;
  model::BuiltModel& built_;
  std::unique_ptr<activation::ActivationCarrier> activations_;
  std::unique_ptr<ShardTraffic> shards_;
  std::unique_ptr<StepContext> context_;
};

}  // namespace sluice::train
