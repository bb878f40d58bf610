#include "core/offload/update_pipeline.h"

#include <algorithm>

namespace sluice::offload {

std::size_t PipelineParts::round_count() const {
  std::size_t most = 0;
  for (const std::vector<SubgroupId>& of_device : subgroups_of) {
    most = std::max(most, of_device.size());
  }
  return most;
}

std::unique_ptr<UpdatePipeline> make_pipeline(const PipelineParts& parts) {
  switch (parts.options.pipeline) {
    case Pipeline::serial:
      return make_serial_pipeline(parts);
    case Pipeline::handover:
      return make_handover_pipeline(parts);
    case Pipeline::nbuffer:
      break;
  }
  return make_nbuffer_pipeline(parts);
}

}  // namespace sluice::offload
