#include "core/session/gpu_recording.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "core/model/device_name.h"

namespace sluice::session {
namespace {

// The layer's ends before the step's.
struct Regions {
  cupti::CuptiRecording::Region step;
  std::optional<cupti::CuptiRecording::Region> layer;
};

bool is_asked(const settings::RunConfig& config) {
  const auto device = model::parse_device_name(config.resources.device);
  return config.record == record::Level::all && device.ok() &&
         device->kind == model::DeviceKind::cuda;
}

}  // namespace

std::unique_ptr<GpuRecording> GpuRecording::start_if_asked(const settings::RunConfig& config,
                                                           record::Recorder& recorder) {
  if (!is_asked(config)) return nullptr;
  auto recording = cupti::CuptiRecording::start(recorder);
  if (!recording.ok()) {
    log_warning("the record has no kernels of the GPU: " + recording.error().message());
    return nullptr;
  }
  return std::unique_ptr<GpuRecording>(new GpuRecording(*std::move(recording)));
}

model::LaunchRegion GpuRecording::region() {
  return [this](LayerId layer) -> std::shared_ptr<void> {
    auto regions =
        std::make_shared<Regions>(Regions{recording_->step_region(step_.load()), std::nullopt});
    if (layer != kNoLayer) regions->layer.emplace(recording_->layer_region(layer));
    return regions;
  };
}

}  // namespace sluice::session
