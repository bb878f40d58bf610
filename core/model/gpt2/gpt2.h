#pragma once
// GPT-2 in libtorch behind TrainableModel. The only folder that links libtorch; this header does
// not include it.
//
// Thread contract: as TrainableModel. libtorch's own threads: `thread_count` for the compute
// thread. How long they spin while they wait for one another is the environment's when the
// program starts (OMP_WAIT_POLICY, GOMP_SPINCOUNT; docs/decisions.md, 48); where other threads
// want the same cores, spinning without end makes steps several times longer.

#include <memory>
#include <string>
#include <vector>

#include "core/model/model_factory.h"

namespace sluice::model {

class Gpt2 : public TrainableModel {
 public:
  // `parameters` is the caller's flat 16-bit array of parameter_count values (see
  // TrainableModel::parameters), which must outlive the model; the tensors
  // are views into it.
  static Result<std::unique_ptr<Gpt2>> make(const ModelShape& shape, const ModelOptions& options,
                                            std::span<std::uint16_t> parameters);
  virtual Result<std::string> sample_text(
      const SampleOptions& options) = 0;  // byte-level vocabularies only
};

// Upper bounds, in bytes of resident memory, of what a model takes besides the flat parameters: of
// all micro-batches together. For the memory plan (D9).
struct ModelMemory {
  std::int64_t library_bytes = 0;  // the program and its libraries, before anything is computed
  std::int64_t activation_bytes = 0;
  std::int64_t temporary_bytes = 0;      // peak inside one layer's forward or backward
  std::int64_t tied_gradient_bytes = 0;  // of a table that two layers share
};

// What libtorch and GPT-2's layers take.
ModelMemory gpt2_memory(const ModelShape& shape, const ModelOptions& options);

ModelFactory gpt2_factory();

}  // namespace sluice::model
