#pragma once
// The weights of the model that adapters are trained on (docs/lora.md): read from its folder when a
// run begins and when it goes on, kept in memory or brought by layer from the drives, and never
// changed.
//
// Thread contract: immutable after read(); the thread that reads is the schedule's.

#include <memory>

#include "base/parameter_span.h"
#include "base/status.h"
#include "base/stops.h"
#include "core/session/recipe.h"
#include "storage/io/page_aligned_buffer.h"

namespace sluice::plan {
struct RunPlan;
}
namespace sluice::weights {
class Checkpoint;
}

namespace sluice::train {

// A run's, of adapters. ErrorCode::not_found where its model has no weights.
Result<std::shared_ptr<const weights::Checkpoint>> find_base(const plan::RunPlan& plan);

// A state goes on with the base that it was begun on, and ranks have the same.
Result<session::Fact> base_fact(const weights::Checkpoint& base);
inline constexpr const char* kBaseFact = "lora_base";

class BaseWeights {
 public:
  // Rounded to 16 bits as master weights are, or fp32.
  static Result<BaseWeights> read(const weights::Checkpoint& base, const plan::RunPlan& plan,
                                  const Stops& stops);

  // Addresses for weights that come by layer from the drives.
  static Result<BaseWeights> by_layer(const plan::RunPlan& plan);

  // In the order of ModelShape::base_layout().
  ParameterSpan span() { return {memory_.bytes().data(), count_, kind_}; }

 private:
  BaseWeights(io::PageAlignedBuffer memory, std::int64_t count, ParameterKind kind)
      : memory_(std::move(memory)), count_(count), kind_(kind) {}

  io::PageAlignedBuffer memory_;
  std::int64_t count_;
  ParameterKind kind_;
};

}  // namespace sluice::train
