#pragma once
// shard_state=auto: the sharding with the shortest step of the run that is asked for, as each rank
// takes it (drive_rank.h), under accelerator_memory or host_memory, wherever the run computes, or
// else the cluster's memory.
//
// Thread contract: free functions; deterministic, so that ranks agree without a word.

#include "base/status.h"

namespace sluice::model {
struct ModelShape;
}
namespace sluice::platform {
struct Platform;
}
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::simulate {

// The config with the scopes in place of auto, or as it is. To be called before plan::plan_run(),
// which takes scopes. Errors (ErrorCode::config): the platform has no [cluster]
// of so many ranks; ErrorCode::memory: no sharding fits.
Result<settings::RunConfig> with_sharding(const settings::RunConfig& config,
                                          const model::ModelShape& shape,
                                          const platform::Platform& platform);
// The same with the model and the platform that the config names.
Result<settings::RunConfig> with_sharding(const settings::RunConfig& config);

}  // namespace sluice::simulate
