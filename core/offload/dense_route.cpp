// Gradients down, every element of them: page-aligned chunks are staged into bounce buffers, or
// into host memory, and written to the device that updates their subgroup. What is left of a layer
// below a page's boundary is the carry (gradient_plan.h).

#include <cstring>

#include "core/model/flat_layout.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_plan.h"
#include "core/offload/gradient_route.h"
#include "core/offload/gradient_store.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_memory.h"
#include "core/offload/step_update.h"
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

class DenseRoute final : public GradientRoute {
 public:
  DenseRoute(const GradientParts& parts, BufferPool& bounces)
      : parts_(parts),
        bounces_(bounces),
        wire_(parts.options.wire_gradient_kind()),
        plan_(make_gradient_plan(parts.layout, parts.geometry, bytes_of(wire_),
                                 parts.options.bounce_bytes)) {}

  IdVector<SubgroupId, std::int32_t> check_counts() const override { return plan_.chunk_count; }
  std::int64_t checked_elements(LayerId layer) const override {
    return parts_.layout.layer(layer).count;
  }

  runtime::Task<Status> send(LayerId layer, std::span<std::byte> gradient, KnownGradients& known,
                             runtime::TaskGroup& writes) override {
    StepUpdate& update = *known.update;
    const LayerGradientPlan& plan = plan_.layers[layer];
    for (const GradientChunk& chunk : plan.chunks) {
      if (parts_.store.is_in_memory()) {
        const std::span<std::byte> place =
            part_of(parts_.store.memory(chunk.subgroup), chunk.first * bytes_of(wire_));
        Status staged = co_await stage(layer, chunk, gradient, place, update);
        CO_RETURN_IF_ERROR(staged);
        update.on_chunk_down(chunk.subgroup);
        continue;
      }
      Result<runtime::Pool::Lease> bounce =
          co_await bounces_.acquire(waiting_for("a bounce buffer for gradients", layer));
      CO_RETURN_IF_ERROR(bounce);
      Status staged = co_await stage(layer, chunk, gradient, bounces_.bytes(*bounce), update);
      CO_RETURN_IF_ERROR(staged);
      writes.spawn(write(chunk, std::move(*bounce), update));
    }
    if (plan.carry_count > 0) {
      Status carried = co_await carry(layer, plan, gradient);
      CO_RETURN_IF_ERROR(carried);
    }
    co_return ok_status();
  }

  runtime::Task<Status> read_back(LayerId layer, std::span<std::byte> gradient,
                                  const KnownGradients& known) override {
    for (const GradientChunk& chunk : plan_.layers[layer].chunks) {
      if (parts_.store.is_in_memory()) {
        const std::span<std::byte> place =
            part_of(parts_.store.memory(chunk.subgroup), chunk.first * bytes_of(wire_));
        Status taken = co_await unstage(layer, chunk, place, gradient, known);
        CO_RETURN_IF_ERROR(taken);
        continue;
      }
      Result<runtime::Pool::Lease> bounce =
          co_await bounces_.acquire(waiting_for("a bounce buffer for gradients", layer));
      CO_RETURN_IF_ERROR(bounce);
      Status read =
          co_await parts_.store.read(chunk.subgroup, chunk.first * bytes_of(wire_),
                                     bounces_.bytes(*bounce), chunk.count * bytes_of(wire_));
      CO_RETURN_IF_ERROR(read);
      Status taken = co_await unstage(layer, chunk, bounces_.bytes(*bounce), gradient, known);
      CO_RETURN_IF_ERROR(taken);
    }
    co_return ok_status();
  }

  void expect_again(LayerId layer, KnownGradients& known) override {
    for (const GradientChunk& chunk : plan_.layers[layer].chunks)
      known.update->on_chunk_again(chunk.subgroup);
  }

  // Nothing is kept of a dense gradient.
  runtime::Task<Status> take_back(const KnownGradients& /*known*/) override {
    co_return ok_status();
  }

 private:
  runtime::Operation stage(LayerId layer, const GradientChunk& chunk, std::span<std::byte> gradient,
                           std::span<std::byte> into, StepUpdate& update) const {
    runtime::OperationLabel label;
    label.stage = stages::Stage::stage_gradient;
    label.layer = layer;
    label.subgroup = chunk.subgroup;
    csd::GradientChunkCheck& check =
        update.gradient_checks[chunk.subgroup][static_cast<std::size_t>(chunk.check_index)];
    return parts_.kernels.stage(label, chunk.count, [this, &chunk, gradient, into, &check] {
      check = stage_chunk(chunk, gradient, into);
      return ok_status();
    });
  }

  // The layer's elements, the carry behind them, and zeros to the end of the page.
  csd::GradientChunkCheck stage_chunk(const GradientChunk& chunk, std::span<std::byte> gradient,
                                      std::span<std::byte> into) const {
    const std::int64_t wire_bytes = bytes_of(wire_);
    const optimizer::GradientKind kind = parts_.options.gradient_kind;
    convert(kind, gradient.data() + chunk.layer_offset * bytes_of(kind), wire_, into.data(),
            chunk.layer_count);
    const std::int64_t carried = chunk.count - chunk.layer_count;
    std::memcpy(into.data() + chunk.layer_count * wire_bytes, parts_.memory.carry().data(),
                static_cast<std::size_t>(carried * wire_bytes));
    const std::int64_t size_bytes = chunk.count * wire_bytes;
    std::memset(into.data() + size_bytes, 0,
                static_cast<std::size_t>(round_up(size_bytes, kPageBytes) - size_bytes));
    return {chunk.first * wire_bytes, size_bytes,
            state::checksum(into.first(static_cast<std::size_t>(size_bytes)))};
  }

  // The other way of stage(), of a layer without a carry and of gradients as wide as on the wire.
  runtime::Operation unstage(LayerId layer, const GradientChunk& chunk, std::span<std::byte> from,
                             std::span<std::byte> gradient, const KnownGradients& known) const {
    CHECK(parts_.options.gradient_kind == wire_);
    CHECK_EQ(chunk.count, chunk.layer_count);
    runtime::OperationLabel label;
    label.stage = stages::Stage::stage_gradient;
    label.layer = layer;
    label.subgroup = chunk.subgroup;
    const csd::GradientChunkCheck& check =
        known.update->gradient_checks[chunk.subgroup][static_cast<std::size_t>(chunk.check_index)];
    return parts_.kernels.stage(label, chunk.count, [this, &chunk, from, gradient, &check] {
      const std::span<std::byte> bytes =
          from.first(static_cast<std::size_t>(chunk.count * bytes_of(wire_)));
      if (state::checksum(bytes) != check.checksum) return not_what_was_written(chunk);
      std::memcpy(gradient.data() + chunk.layer_offset * bytes_of(wire_), bytes.data(),
                  bytes.size());
      return ok_status();
    });
  }

  static Status not_what_was_written(const GradientChunk& chunk) {
    return make_error(ErrorCode::corrupt,
                      "the gradients of subgroup {}, {} elements from element {} on, are not what "
                      "was written",
                      index_of(chunk.subgroup), chunk.count, chunk.first);
  }

  runtime::Operation carry(LayerId layer, const LayerGradientPlan& plan,
                           std::span<std::byte> gradient) const {
    runtime::OperationLabel label;
    label.stage = stages::Stage::stage_gradient;
    label.layer = layer;
    return parts_.kernels.stage(label, plan.carry_count, [this, &plan, gradient] {
      std::byte* carry = parts_.memory.carry().data();
      std::memmove(carry + plan.carry_count * bytes_of(wire_), carry,
                   static_cast<std::size_t>(plan.carry_kept_count * bytes_of(wire_)));
      convert(parts_.options.gradient_kind, gradient.data(), wire_, carry, plan.carry_count);
      return ok_status();
    });
  }

  runtime::Task<Status> write(const GradientChunk& chunk, runtime::Pool::Lease bounce,
                              StepUpdate& update) {
    Status status =
        co_await parts_.store.write(chunk.subgroup, chunk.first * bytes_of(wire_),
                                    bounces_.bytes(bounce), chunk.count * bytes_of(wire_));
    if (status.ok()) update.on_chunk_down(chunk.subgroup);
    co_return status;
  }

  GradientParts parts_;
  BufferPool& bounces_;
  optimizer::GradientKind wire_;
  GradientPlan plan_;
};

}  // namespace

std::unique_ptr<GradientRoute> make_dense_route(const GradientParts& parts, BufferPool& bounces) {
  return std::make_unique<DenseRoute>(parts, bounces);
}

}  // namespace sluice::offload
