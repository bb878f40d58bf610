#pragma once
// The models that compute with libtorch: a stack (core/model/torch/stack_model.h) of each family
// that has functions for it. This header is all that other folders see of them; it does not include
// libtorch.
//
// Thread contract: as ModelFactory. libtorch's own threads: `thread_count` for the compute thread.
// How long they spin while they wait for one another is the environment's when libtorch is loaded
// (OMP_WAIT_POLICY, GOMP_SPINCOUNT; docs/decisions.md, 48); where other threads want the same
// cores, spinning without end makes steps several times longer.

#include <string>

#include "core/model/compute_memory.h"
#include "core/model/launch_region.h"
#include "core/model/model_factory.h"

namespace sluice::model {

// How this processor makes products, and compute_memory() with them.
Products host_products(ParameterKind kind);
ComputeMemory host_compute_memory(const ModelShape& shape, const ModelOptions& options);

// Whose models compute in host memory.
ModelFactory host_factory();

// Whose models compute on a device of that name (core/model/device_name.h), which is opened here;
// `memory_cap_bytes` 0: all that it has. What is launched on it is in a `region` of its layer,
// which models call as long as they live. Errors: not_found, with what to do.
Result<ModelFactory> model_factory(const std::string& device, std::int64_t memory_cap_bytes,
                                   int thread_count, const LaunchRegion& region = {});

}  // namespace sluice::model
