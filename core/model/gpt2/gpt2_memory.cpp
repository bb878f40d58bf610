#include "core/model/gpt2/gpt2.h"

namespace sluice::model {

ComputeMemory gpt2_memory(const ModelShape& shape, const Gpt2Options& options) {
  const std::int64_t tokens = options.batch * options.sequence;
  return {300 << 20, tokens * shape.hidden * 32 * shape.layers * options.micro_step_count, 0, 0};
}

}  // namespace sluice::model
