#pragma once
// Gradient work on a device beside the host's, on the gradients of the lowest layers, which a step
// has left there.

#include "tests/core/model/torch/device_step.h"

namespace sluice::model {

// `numbers` is what the step has given. Fails the test where a bit differs.
void check_gradient_work(DeviceStep& step, const StepNumbers& numbers, const ModelOptions& options);

}  // namespace sluice::model
