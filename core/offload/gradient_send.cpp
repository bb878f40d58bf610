// Gradients down: check, stage page-aligned chunks into bounce buffers, write them to their owner.

#include <cstring>

#include "core/offload/offload.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

// `count` gradients of the model's kind into the wire's kind. Widening is exact.
void convert(optimizer::GradientKind from_kind, const std::byte* from,
             optimizer::GradientKind to_kind, std::byte* to, std::int64_t count) {
  if (from_kind == to_kind) {
    std::memcpy(to, from, static_cast<std::size_t>(count * bytes_of(to_kind)));
    return;
  }
  const Float16Kind kind =
      from_kind == optimizer::GradientKind::bf16 ? Float16Kind::bf16 : Float16Kind::fp16;
  optimizer::widen(reinterpret_cast<const std::uint16_t*>(from), kind, reinterpret_cast<float*>(to),
                   count);
}

}  // namespace

runtime::Pool::Awaiter Offload::acquire_layer_gradient(LayerId layer) {
  runtime::Waiting waiting;
  waiting.what = "one of the two layer gradients";
  waiting.layer = layer;
  return layer_gradients_.acquire(waiting);
}

model::LayerGradient Offload::layer_gradient(const runtime::Pool::Lease& lease, LayerId layer) {
  model::LayerGradient gradient;
  gradient.element_count = parts_.layout->layer(layer).count;
  std::byte* data = parts_.memory->layer_gradient(lease.index()).data();
  if (options_.gradient_kind == optimizer::GradientKind::fp32) {
    gradient.values_fp32 = reinterpret_cast<float*>(data);
  } else {
    gradient.values_16bit = reinterpret_cast<std::uint16_t*>(data);
  }
  return gradient;
}

void Offload::send_gradient(LayerId layer, runtime::Pool::Lease lease) {
  sends_.spawn(send_layer(layer, std::move(lease)));
}

runtime::Task<Status> Offload::gradients_sent() {
  Status status = co_await sends_.join();
  co_return status;
}

optimizer::GradientStats Offload::gradient_stats() const {
  optimizer::GradientStats total;
  for (const optimizer::GradientStats& layer : layer_stats_) {
    total.sum_of_squares += layer.sum_of_squares;
    total.finite = total.finite && layer.finite;
  }
  return total;
}

runtime::Task<Status> Offload::send_layer(LayerId layer, runtime::Pool::Lease lease) {
  runtime::TaskGroup writes(runtime());
  Status staged = co_await stage_layer(layer, std::move(lease), writes);
  Status written = co_await writes.join();
  if (!staged.ok()) co_return staged;
  co_return written;
}

runtime::Task<Status> Offload::stage_layer(LayerId layer, runtime::Pool::Lease lease,
                                           runtime::TaskGroup& writes) {
  runtime::Waiting waiting;
  waiting.layer = layer;
  waiting.what = "the layer above to be staged";
  Result<runtime::Pool::Lease> turn = co_await staging_turn_.acquire(waiting);
  CO_RETURN_IF_ERROR(turn);
  const std::span<std::byte> gradient = parts_.memory->layer_gradient(lease.index());
  Status checked = co_await check_operation(layer, gradient);
  CO_RETURN_IF_ERROR(checked);
  if (options_.is_sparse()) {
    Status compressed = co_await compress_layer(layer, gradient, writes);
    co_return compressed;
  }
  const LayerGradientPlan& plan = gradient_plan_.layers[static_cast<std::size_t>(index_of(layer))];
  for (const GradientChunk& chunk : plan.chunks) {
    if (options_.gradient_tier == GradientTier::memory) {
      Status staged = co_await stage_operation(layer, chunk, gradient, gradient_store(chunk));
      CO_RETURN_IF_ERROR(staged);
      continue;
    }
    waiting.what = "a bounce buffer for gradients";
    Result<runtime::Pool::Lease> bounce = co_await bounces_.acquire(waiting);
    CO_RETURN_IF_ERROR(bounce);
    Status staged =
        co_await stage_operation(layer, chunk, gradient, parts_.memory->bounce(bounce->index()));
    CO_RETURN_IF_ERROR(staged);
    writes.spawn(write_chunk(chunk, std::move(*bounce)));
  }
  if (plan.carry_count > 0) {
    Status carried = co_await carry_operation(layer, gradient);
    CO_RETURN_IF_ERROR(carried);
  }
  co_return ok_status();
}

// Where a chunk waits in host memory; empty without payload.
std::span<std::byte> Offload::gradient_store(const GradientChunk& chunk) const {
  if (!has_payload()) return {};
  const std::int64_t first_bytes = chunk.first * bytes_of(options_.wire_gradient_kind());
  return parts_.memory->gradient(chunk.subgroup).subspan(static_cast<std::size_t>(first_bytes));
}

runtime::Operation Offload::check_operation(LayerId layer, std::span<std::byte> gradient) {
  const std::int64_t count = parts_.layout->layer(layer).count;
  runtime::OperationLabel label;
  label.stage = runtime::Stage::gradient;
  label.layer = layer;
  // Where gradients are compressed, the pass that selects is charged for and sees every element.
  runtime::Operation operation = host_kernel(label, options_.is_sparse() ? 0 : count);
  if (has_payload()) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [this, layer, gradient, count] {
      layer_stats_[static_cast<std::size_t>(index_of(layer))] =
          optimizer::gradient_stats(gradient.data(), options_.gradient_kind, count);
      return ok_status();
    };
  }
  return operation;
}

runtime::Operation Offload::stage_operation(LayerId layer, const GradientChunk& chunk,
                                            std::span<std::byte> gradient,
                                            std::span<std::byte> bounce) {
  runtime::OperationLabel label;
  label.stage = runtime::Stage::stage_gradient;
  label.layer = layer;
  label.subgroup = chunk.subgroup;
  runtime::Operation operation = host_kernel(label, chunk.count);
  if (!has_payload()) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [this, chunk, gradient, bounce] {
    const optimizer::GradientKind wire = options_.wire_gradient_kind();
    const std::int64_t wire_bytes = bytes_of(wire);
    convert(options_.gradient_kind,
            gradient.data() + chunk.layer_offset * bytes_of(options_.gradient_kind), wire,
            bounce.data(), chunk.layer_count);
    const std::int64_t carried = chunk.count - chunk.layer_count;
    std::memcpy(bounce.data() + chunk.layer_count * wire_bytes, parts_.memory->carry().data(),
                static_cast<std::size_t>(carried * wire_bytes));
    const std::int64_t size_bytes = chunk.count * wire_bytes;
    std::memset(bounce.data() + size_bytes, 0,
                static_cast<std::size_t>(round_up(size_bytes, kPageBytes) - size_bytes));
    gradient_checks_[static_cast<std::size_t>(index_of(chunk.subgroup))][static_cast<std::size_t>(
        chunk.check_index)] = {chunk.first * wire_bytes, size_bytes,
                               state::checksum(bounce.first(static_cast<std::size_t>(size_bytes)))};
    return ok_status();
  };
  return operation;
}

runtime::Operation Offload::carry_operation(LayerId layer, std::span<std::byte> gradient) {
  const LayerGradientPlan& plan = gradient_plan_.layers[static_cast<std::size_t>(index_of(layer))];
  runtime::OperationLabel label;
  label.stage = runtime::Stage::stage_gradient;
  label.layer = layer;
  runtime::Operation operation = host_kernel(label, plan.carry_count);
  if (!has_payload()) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [this, &plan, gradient] {
    const optimizer::GradientKind wire = options_.wire_gradient_kind();
    std::byte* carry = parts_.memory->carry().data();
    std::memmove(carry + plan.carry_count * bytes_of(wire), carry,
                 static_cast<std::size_t>(plan.carry_kept_count * bytes_of(wire)));
    convert(options_.gradient_kind, gradient.data(), wire, carry, plan.carry_count);
    return ok_status();
  };
  return operation;
}

csd::DrivePlace Offload::gradient_place(SubgroupId subgroup) const {
  const auto device = static_cast<std::size_t>(index_of(device_of(subgroup)));
  const std::int64_t offset_bytes =
      gradient_offset_bytes_[static_cast<std::size_t>(index_of(subgroup))];
  if (!has_payload()) return {nullptr, offset_bytes};
  return {&parts_.devices->gradient_files[device], offset_bytes};
}

runtime::Task<Status> Offload::write_chunk(const GradientChunk& chunk,
                                           runtime::Pool::Lease bounce) {
  const std::int64_t wire_bytes = bytes_of(options_.wire_gradient_kind());
  csd::Transfer transfer;
  transfer.place = gradient_place(chunk.subgroup);
  transfer.place.offset_bytes += chunk.first * wire_bytes;
  transfer.bytes = parts_.memory->bounce(bounce.index());
  transfer.size_bytes = chunk.count * wire_bytes;
  const csd::Owner owner{runtime::Stage::gradient_down, chunk.subgroup};
  const auto device = static_cast<std::size_t>(index_of(device_of(chunk.subgroup)));
  Status status = co_await parts_.devices->drives[device]->host_write(owner, transfer);
  co_return status;
}

}  // namespace sluice::offload
