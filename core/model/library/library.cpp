// The entry of libsluice_models.so (core/model/model_library.h).

#include "core/model/library/models.h"
#include "core/model/model_library.h"
#include "core/model/torch/device_report.h"
#include "core/model/torch/device_timing.h"

extern "C" const sluice::model::ModelLibrary* sluice_model_library();

const sluice::model::ModelLibrary* sluice_model_library() {
  namespace model = sluice::model;
  static constexpr model::ModelLibrary kLibrary{.factory = model::model_factory,
                                                .host_factory = model::host_factory,
                                                .report_devices = model::report_devices,
                                                .time_device = model::time_device};
  return &kLibrary;
}
