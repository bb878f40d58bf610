#include "core/train/step_context.h"

#include "core/offload/offload.h"
#include "core/offload/parameter_carrier.h"
#include "core/train/shard_traffic.h"

namespace sluice::train {

offload::ParameterSource& StepContext::parameters() const {
  if (shards != nullptr) return *shards;
  return offload.source();
}

}  // namespace sluice::train
