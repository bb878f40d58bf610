#pragma once
// GPT-2 in libtorch behind TrainableModel. This header is what other folders see of it; it does not
// include libtorch, as this folder and core/model/torch do.
//
// Thread contract: as TrainableModel. libtorch's own threads: `thread_count` for the compute
// thread. How long they spin while they wait for one another is the environment's when libtorch is
// loaded (OMP_WAIT_POLICY, GOMP_SPINCOUNT; docs/decisions.md, 48); where other threads
// want the same cores, spinning without end makes steps several times longer.

#include <memory>
#include <string>
#include <vector>

#include "core/model/compute_memory.h"
#include "core/model/launch_region.h"
#include "core/model/model_factory.h"

namespace sluice::model {

class Gpt2 : public TrainableModel {
 public:
  // In host memory. `parameters` is the caller's flat 16-bit array of parameter_count values (see
  // TrainableModel::parameters), which must outlive the model; the tensors are views into it.
  static Result<std::unique_ptr<Gpt2>> make(const ModelShape& shape, const ModelOptions& options,
                                            std::span<std::uint16_t> parameters);
  // Byte-level vocabularies only. Always computed in host memory, where all parameters are.
  virtual Result<std::string> sample_text(const SampleOptions& options) = 0;
  // The same text, of which only the layer that is computed, and the first, need be in memory.
  virtual Result<std::unique_ptr<TextWriter>> write_text(const SampleOptions& options) = 0;
};

// compute_memory() with this processor's products.
ComputeMemory gpt2_memory(const ModelShape& shape, const ModelOptions& options);

// Whose models compute in host memory.
ModelFactory gpt2_factory();

// Whose models compute on a device of that name (core/model/device_name.h), which is opened here;
// `memory_cap_bytes` 0: all that it has. What is launched on it is in a `region` of its layer,
// which models call as long as they live. Errors: not_found, with what to do.
Result<ModelFactory> gpt2_factory(const std::string& device, std::int64_t memory_cap_bytes,
                                  int thread_count, const LaunchRegion& region = {});

}  // namespace sluice::model
