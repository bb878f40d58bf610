#include "core/runtime/label_text.h"

namespace sluice::runtime {

std::string owner_text(DeviceId device, SubgroupId subgroup, LayerId layer) {
  std::string text;
  if (subgroup != kNoSubgroup) text += fmt::format(" of subgroup {}", index_of(subgroup));
  if (layer != kNoLayer) text += fmt::format(" of layer {}", index_of(layer));
  if (device != kNoDevice) text += fmt::format(" on device {}", index_of(device));
  return text;
}

std::string label_text(const OperationLabel& label) {
  return std::string(stages::stage_name(label.stage)) +
         owner_text(label.device, label.subgroup, label.layer);
}

}  // namespace sluice::runtime
