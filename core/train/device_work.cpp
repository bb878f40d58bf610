#include "core/train/device_work.h"

#include "core/model/compute_device.h"

namespace sluice::train {
namespace {

Status start(model::GradientDevice& gradients, const DeviceWork& work, model::WhenDone done) {
  switch (work.kind) {
    case DeviceWork::Kind::check_gradient:
      return gradients.check(work.layer, work.gradient, std::move(done));
    case DeviceWork::Kind::sums_out:
      return gradients.sums_out(work.part, reinterpret_cast<double*>(work.host), std::move(done));
    case DeviceWork::Kind::select_gradient:
      return gradients.select(work.layer, work.gradient, work.segment,
                              static_cast<float>(work.gradient_scale), std::move(done));
    case DeviceWork::Kind::kept_out:
      return gradients.kept_out(work.layer, work.part, work.kept(), std::move(done));
    case DeviceWork::Kind::put_back:
      return gradients.put_back(work.layer, work.kept(), std::move(done));
    case DeviceWork::Kind::residual_out:
      return gradients.residual_out(work.part, work.host, std::move(done));
    default:
      break;
  }
  return gradients.residual_in(work.part, work.host, std::move(done));
}

Status start(model::ComputeDevice& device, const DeviceWork& work, model::WhenDone done) {
  switch (work.kind) {
    case DeviceWork::Kind::batch_in:
      return device.batch_in(work.micro_step, work.part, std::move(done));
    case DeviceWork::Kind::layer_in:
      return device.layer_in(work.layer, work.part, std::move(done));
    case DeviceWork::Kind::forward:
      return device.forward(work.layer, work.micro_step, std::move(done));
    case DeviceWork::Kind::backward:
      return device.backward(work.layer, work.micro_step, work.gradient_scale, work.gradient,
                             std::move(done));
    case DeviceWork::Kind::gradient_out:
      return device.gradient_out(work.layer, work.gradient, work.part, work.host, std::move(done));
    case DeviceWork::Kind::loss_out:
      return device.loss_out(work.micro_step, std::move(done));
    default:
      break;
  }
  return start(device.gradients(), work, std::move(done));
}

}  // namespace

void set_device_work(const StepContext& context, runtime::Operation& operation,
                     const DeviceWork& work) {
  if (context.device == nullptr) return;
  operation.work.kind = runtime::WorkKind::external;
  operation.work.patience_ns = context.device_patience_ns;
  operation.work.start = [device = context.device, work](runtime::Completion completion) {
    return start(*device, work, [completion = std::move(completion)](Status ended) {
      completion.note(std::move(ended));
    });
  };
}

std::byte* data_of(const model::LayerGradient& gradient) {
  return gradient.values_fp32 != nullptr ? reinterpret_cast<std::byte*>(gradient.values_fp32)
                                         : reinterpret_cast<std::byte*>(gradient.values_16bit);
}

}  // namespace sluice::train
