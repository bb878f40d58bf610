#include "core/offload/gradient_sender.h"

namespace sluice::offload {

GradientSender::GradientSender(const GradientParts& parts, BufferPool& bounces)
    : parts_(parts),
      layer_gradients_(parts.kernels.runtime(), parts.memory.layer_gradients()),
      turn_(parts.kernels.runtime(), 1),
      route_(parts.options.is_sparse() ? make_sparse_route(parts)
                                       : make_dense_route(parts, bounces)) {}

runtime::Pool::Awaiter GradientSender::acquire(LayerId layer) {
  return layer_gradients_.acquire(waiting_for("one of the two layer gradients", layer));
}

model::LayerGradient GradientSender::view(const runtime::Pool::Lease& lease, LayerId layer) const {
  model::LayerGradient gradient;
  gradient.element_count = parts_.layout.layer(layer).layer_elements();
  std::byte* data = layer_gradients_.bytes(lease).data();
  if (parts_.options.gradient_kind == optimizer::GradientKind::fp32) {
    gradient.values_fp32 = reinterpret_cast<float*>(data);
  } else {
    gradient.values_16bit = reinterpret_cast<std::uint16_t*>(data);
  }
  return gradient;
}

void GradientSender::send(StepUpdate& update, LayerId layer, runtime::Pool::Lease lease) {
  update.sends.spawn(send_layer(update, layer, std::move(lease)));
}

runtime::Task<Status> GradientSender::send_layer(StepUpdate& update, LayerId layer,
                                                 runtime::Pool::Lease lease) {
  runtime::TaskGroup writes(parts_.kernels.runtime());
  Status staged = co_await stage_layer(update, layer, std::move(lease), writes);
  Status written = co_await writes.join();
  if (!staged.ok()) co_return staged;
  co_return written;
}

runtime::Task<Status> GradientSender::stage_layer(StepUpdate& update, LayerId layer,
                                                  runtime::Pool::Lease lease,
                                                  runtime::TaskGroup& writes) {
  Result<runtime::Pool::Lease> turn =
      co_await turn_.acquire(waiting_for("the layer above to be staged", layer));
  CO_RETURN_IF_ERROR(turn);
  const std::span<std::byte> gradient = layer_gradients_.bytes(lease);
  if (!parts_.options.sums_come()) {
    Status checked = co_await check(update, layer, gradient);
    CO_RETURN_IF_ERROR(checked);
  }
  const std::int64_t before_bytes =
      parts_.layout.layer(layer).before * bytes_of(parts_.options.gradient_kind);
  Status sent = co_await route_->send(layer, part_of(gradient, before_bytes), update, writes);
  co_return sent;
}

runtime::Operation GradientSender::check(StepUpdate& update, LayerId layer,
                                         std::span<std::byte> gradient) const {
  runtime::OperationLabel label;
  label.stage = runtime::Stage::gradient;
  label.layer = layer;
  const std::int64_t count = parts_.layout.layer(layer).count;
  const std::int64_t summed_twice = update.clip ? update.clip->plan().part_elements(layer) : 0;
  return parts_.kernels.stage(
      label, route_->checked_elements(layer) + summed_twice,
      [&update, layer, gradient, count, kind = parts_.options.gradient_kind] {
        update.layer_stats[layer] = update.clip
                                        ? update.clip->note_gradient(layer, gradient.data(), kind)
                                        : optimizer::gradient_stats(gradient.data(), kind, count);
        return ok_status();
      });
}

}  // namespace sluice::offload
