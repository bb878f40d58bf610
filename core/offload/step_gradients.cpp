#include "core/offload/step_gradients.h"

#include <algorithm>
#include <cmath>

#include "core/model/flat_layout.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_memory.h"
#include "core/offload/step_update.h"

namespace sluice::offload {

optimizer::GradientStats KnownGradients::stats() const {
  optimizer::GradientStats total;
  for (const optimizer::GradientStats& layer : of_layer) {
    total.sum_of_squares += layer.sum_of_squares;
    total.finite = total.finite && layer.finite;
  }
  return total;
}

StepGradients::StepGradients(const GradientParts& parts, BufferPool& bounces)
    : parts_(parts),
      layer_gradients_(parts.kernels.runtime(), parts.memory.layer_gradients()),
      turn_(parts.kernels.runtime(), 1),
      route_(parts.options.is_sparse() ? make_sparse_route(parts)
                                       : make_dense_route(parts, bounces)),
      sends_(parts.kernels.runtime()) {
  known_.of_layer.resize(parts.layout.layer_count());
  known_.is_selected_from.resize(parts.layout.layer_count());
}

void StepGradients::begin(StepUpdate& update, double loss_scale) {
  known_.update = &update;
  known_.loss_scale = loss_scale;
  std::ranges::fill(known_.of_layer, optimizer::GradientStats{});
  std::ranges::fill(known_.is_selected_from, 0);
}

runtime::Pool::Awaiter StepGradients::acquire(LayerId layer) {
  return layer_gradients_.acquire(waiting_for("one of the two layer gradients", layer));
}

model::LayerGradient StepGradients::view(const runtime::Pool::Lease& lease, LayerId layer) const {
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

void StepGradients::send(LayerId layer, runtime::Pool::Lease lease) {
  sends_.spawn(send_layer(layer, std::move(lease)));
}

runtime::Task<Status> StepGradients::read_back(LayerId layer, const runtime::Pool::Lease& lease) {
  Status read = co_await route_->read_back(layer, layer_gradients_.bytes(lease), known_);
  co_return read;
}

void StepGradients::send_again(LayerId layer, runtime::Pool::Lease lease) {
  route_->expect_again(layer, known_);
  send(layer, std::move(lease));
}

runtime::Task<Status> StepGradients::send_layer(LayerId layer, runtime::Pool::Lease lease) {
  Result<runtime::Pool::Lease> turn =
      co_await turn_.acquire(waiting_for("the layer above to be staged", layer));
  CO_RETURN_IF_ERROR(turn);
  const std::span<std::byte> gradient = layer_gradients_.bytes(lease);
  if (!parts_.options.sums_come()) {
    Status checked = co_await check_whole(layer, gradient);
    CO_RETURN_IF_ERROR(checked);
  }
  const std::int64_t before_bytes =
      parts_.layout.layer(layer).before * bytes_of(parts_.options.gradient_kind);
  runtime::TaskGroup writes(parts_.kernels.runtime());
  Status staged = co_await route_->send(layer, part_of(gradient, before_bytes), known_, writes);
  // Bytes that are still being written are in buffers of their own.
  turn->release();
  lease.release();
  Status written = co_await writes.join();
  co_return staged.ok() ? written : staged;
}

runtime::Operation StepGradients::check_whole(LayerId layer, std::span<std::byte> gradient) {
  std::optional<SubgroupClip>& clip = known_.update->clip;
  const std::int64_t count = parts_.layout.layer(layer).count;
  const std::int64_t summed_twice = clip ? clip->plan().part_elements(layer) : 0;
  return check(layer, route_->checked_elements(layer) + summed_twice,
               [this, &clip, layer, gradient, count, kind = parts_.options.gradient_kind] {
                 known_.of_layer[layer] =
                     clip ? clip->note_gradient(layer, gradient.data(), kind)
                          : optimizer::gradient_stats(gradient.data(), kind, count);
                 return ok_status();
               });
}

runtime::Operation StepGradients::check(LayerId layer, std::int64_t elements,
                                        const runtime::InlineFunction& work) const {
  runtime::OperationLabel label;
  label.stage = stages::Stage::gradient;
  label.layer = layer;
  return parts_.kernels.stage(label, elements, work);
}

std::int32_t StepGradients::clipped_count() const {
  const std::optional<SubgroupClip>& clip = known_.update->clip;
  return clip ? clip->clipped_count() : 0;
}

BlockSums StepGradients::block_sums(LayerId layer) const {
  const model::LayerRange& range = parts_.layout.layer(layer);
  double* const into = parts_.memory.block_sums().data();
  const NormPlan* const plan = parts_.norm_plan;
  if (plan == nullptr) {
    return {into, optimizer::norm_block_count(range.layer_elements()), range.count};
  }
  return {into, plan->sum_count(layer), range.count + plan->part_elements(layer)};
}

void StepGradients::note_block_sums(LayerId layer) {
  optimizer::GradientStats& stats = known_.of_layer[layer];
  const std::span<const double> sums = parts_.memory.block_sums();
  if (sums.empty()) return;  // no payload
  if (parts_.norm_plan != nullptr) {
    stats = known_.update->clip->note_sums(layer, sums);
    return;
  }
  for (const double sum : sums.first(static_cast<std::size_t>(block_sums(layer).count))) {
    stats = optimizer::add_block(stats, {sum, std::isfinite(sum)});
  }
}

model::KeptPlace StepGradients::kept_place(LayerId layer) const {
  if (!parts_.memory.has_compress()) return {};
  const compress::KeptRoom room = parts_.memory.compress().kept_room(
      parts_.format.kept_first(layer), parts_.format.kept_count(layer));
  return {room.indices, room.values};
}

}  // namespace sluice::offload
