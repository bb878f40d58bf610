// Gradients down, compressed (density < 1): the largest elements of each segment are selected as
// its layer arrives; when a subgroup's last segment is in, its sparse gradient is encoded and sent
// to its owner. There are no pages to fill and no carry: a subgroup is one write.

#include "core/compress/sparse_gradient.h"
#include "core/offload/device_line.h"
#include "core/offload/offload.h"
#include "core/runtime/kernel_cost.h"
#include "storage/state/checksum.h"

namespace sluice::offload {

runtime::Task<Status> Offload::compress_layer(LayerId layer, std::span<std::byte> gradient,
                                              runtime::TaskGroup& writes) {
  // After an overflow the step is skipped, and what overflowed must not enter the residual.
  if (!gradient_stats().finite) co_return ok_status();
  for (const GradientSegment& segment : gradient_format_.segments(layer)) {
    Status selected = co_await compress_operation(layer, segment, gradient);
    CO_RETURN_IF_ERROR(selected);
    if (segment.first > 0) continue;  // a layer below has the rest of the subgroup
    Status sent = co_await send_sparse(segment.subgroup, writes);
    CO_RETURN_IF_ERROR(sent);
  }
  compressed_from_layer_ = index_of(layer);
  co_return ok_status();
}

runtime::Operation Offload::compress_operation(LayerId layer, const GradientSegment& segment,
                                               std::span<std::byte> gradient) {
  const platform::Platform& platform = *parts_.platform;
  const platform::EngineId id = platform.compressing_engine();
  runtime::Operation operation;
  operation.runtime = &runtime();
  operation.label.stage = runtime::Stage::compress;
  operation.label.layer = layer;
  operation.label.subgroup = segment.subgroup;
  operation.cost =
      runtime::kernel_cost(id, platform.engines[static_cast<std::size_t>(platform::index_of(id))],
                           "compress", static_cast<double>(segment.count));
  if (!has_payload()) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [this, &segment, gradient] {
    parts_.memory->compress().select(
        segment, geometry().first_element(segment.subgroup) + segment.first,
        gradient.data() + segment.layer_offset * bytes_of(options_.gradient_kind),
        options_.gradient_kind, static_cast<float>(1 / loss_scale_));
    return ok_status();
  };
  return operation;
}

runtime::Task<Status> Offload::send_sparse(SubgroupId subgroup, runtime::TaskGroup& writes) {
  if (options_.gradient_tier == GradientTier::memory) {
    Status encoded = co_await encode_operation(subgroup, parts_.memory->gradient(subgroup));
    co_return encoded;
  }
  Result<runtime::Pool::Lease> buffer = co_await sparse_buffers_.acquire(
      waiting_for("a buffer for a sparse gradient", device_of(subgroup), subgroup));
  CO_RETURN_IF_ERROR(buffer);
  Status encoded =
      co_await encode_operation(subgroup, parts_.memory->sparse_buffer(buffer->index()));
  CO_RETURN_IF_ERROR(encoded);
  writes.spawn(write_sparse(subgroup, std::move(*buffer)));
  co_return ok_status();
}

runtime::Operation Offload::encode_operation(SubgroupId subgroup, std::span<std::byte> bytes) {
  const std::int64_t kept_count = gradient_format_.kept_count(subgroup);
  runtime::OperationLabel label;
  label.stage = runtime::Stage::stage_gradient;
  label.subgroup = subgroup;
  runtime::Operation operation = host_kernel(label, kept_count);
  if (!has_payload()) return operation;
  operation.work.kind = runtime::WorkKind::function;
  operation.work.function = [this, subgroup, kept_count, bytes] {
    const std::int64_t size_bytes = compress::encode_sparse_gradient(
        parts_.memory->compress().kept(gradient_format_.kept_first(subgroup), kept_count),
        geometry().element_count(subgroup), options_.wire_gradient_kind(), bytes);
    gradient_checks_[static_cast<std::size_t>(index_of(subgroup))][0] = {
        0, size_bytes, state::checksum(bytes.first(static_cast<std::size_t>(size_bytes)))};
    return ok_status();
  };
  return operation;
}

runtime::Task<Status> Offload::write_sparse(SubgroupId subgroup, runtime::Pool::Lease buffer) {
  const auto device = static_cast<std::size_t>(index_of(device_of(subgroup)));
  Status status = co_await parts_.devices->drives[device]->host_write(
      {runtime::Stage::gradient_down, subgroup},
      {gradient_place(subgroup), parts_.memory->sparse_buffer(buffer.index()),
       gradient_format_.size_bytes(subgroup)});
  co_return status;
}

// The step is skipped: what its gradients had taken out of the residual goes back.
runtime::Task<Status> Offload::put_back() {
  runtime::OperationLabel label;
  label.stage = runtime::Stage::compress;
  runtime::Operation operation = host_kernel(label, gradient_format_.kept_count());
  if (has_payload()) {
    operation.work.kind = runtime::WorkKind::function;
    operation.work.function = [this] {
      for (std::int32_t layer = compressed_from_layer_; layer < parts_.layout->layer_count();
           ++layer) {
        for (const GradientSegment& segment : gradient_format_.segments(LayerId{layer})) {
          parts_.memory->compress().put_back(
              segment, geometry().first_element(segment.subgroup) + segment.first);
        }
      }
      return ok_status();
    };
  }
  Status status = co_await operation;
  co_return status;
}

}  // namespace sluice::offload
