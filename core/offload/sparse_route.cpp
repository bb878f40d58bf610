// Gradients down, compressed (density < 1): the largest elements of each segment are selected as
// its layer arrives, in whatever order; when a subgroup's last segment is in, its sparse gradient
// is encoded and sent to the device that updates it. There are no pages to fill and no carry: a
// subgroup is one write. With gradient_work=accelerator what is selected comes from there, and the
// residual is there too.

#include "core/compress/sparse_gradient.h"
#include "core/model/flat_layout.h"
#include "core/offload/buffer_pool.h"
#include "core/offload/gradient_route.h"
#include "core/offload/gradient_store.h"
#include "core/offload/host_kernels.h"
#include "core/offload/offload_memory.h"
#include "core/offload/step_update.h"
#include "storage/state/checksum.h"

namespace sluice::offload {
namespace {

class SparseRoute final : public GradientRoute {
 public:
  explicit SparseRoute(const GradientParts& parts)
      : parts_(parts),
        buffers_(parts.kernels.runtime(), parts.memory.sparse_buffers()),
        segment_count_(parts.geometry.subgroup_count()) {
    for (const LayerId layer : all_ids<LayerId>(parts.layout.layer_count())) {
      for (const GradientSegment& segment : parts.format.segments(layer)) {
        segment_count_[segment.subgroup] += 1;
      }
    }
    segments_to_come_ = segment_count_;
  }

  IdVector<SubgroupId, std::int32_t> check_counts() const override {
    return IdVector<SubgroupId, std::int32_t>(parts_.geometry.subgroup_count(), 1);
  }
  // The pass that selects sees every element and is charged for it.
  std::int64_t checked_elements(LayerId /*layer*/) const override { return 0; }

  runtime::Task<Status> send(LayerId layer, std::span<std::byte> gradient, KnownGradients& known,
                             runtime::TaskGroup& writes) override {
    // After an overflow the step is skipped, and what overflowed must not enter the residual.
    if (!known.stats().finite) co_return ok_status();
    for (const GradientSegment& segment : parts_.format.segments(layer)) {
      if (parts_.options.selects_on_host()) {
        Status selected = co_await select(layer, segment, gradient, known.loss_scale);
        CO_RETURN_IF_ERROR(selected);
      }
      if (--segments_to_come_[segment.subgroup] > 0) continue;
      segments_to_come_[segment.subgroup] = segment_count_[segment.subgroup];
      Status sent = co_await send_subgroup(segment.subgroup, *known.update, writes);
      CO_RETURN_IF_ERROR(sent);
    }
    if (parts_.options.selects_on_host()) known.is_selected_from[layer] = 1;
    co_return ok_status();
  }

  // What was not selected is not there.
  runtime::Task<Status> read_back(LayerId /*layer*/, std::span<std::byte> /*gradient*/,
                                  const KnownGradients& /*known*/) override {
    co_return make_error(ErrorCode::unsupported,
                         "gradients of which the largest elements were sent cannot be read back");
  }
  void expect_again(LayerId /*layer*/, KnownGradients& /*known*/) override {
    CHECK(false && "a compressed gradient is sent once");
  }

  runtime::Task<Status> take_back(const KnownGradients& known) override {
    segments_to_come_ = segment_count_;  // the skipped step's layers were not all selected from
    if (!parts_.options.has_feedback() || !parts_.options.selects_on_host()) co_return ok_status();
    runtime::OperationLabel label;
    label.stage = stages::Stage::compress;
    const runtime::Operation put_back =
        parts_.kernels.stage(label, parts_.format.kept_count(), [this, &known] {
          for (const LayerId layer : ids_of(known.is_selected_from)) {
            if (known.is_selected_from[layer] == 0) continue;
            for (const GradientSegment& segment : parts_.format.segments(layer)) {
              parts_.memory.compress().put_back(segment, flat_first(segment));
            }
          }
          return ok_status();
        });
    Status status = co_await put_back;
    co_return status;
  }

 private:
  std::int64_t flat_first(const GradientSegment& segment) const {
    return parts_.geometry.first_element(segment.subgroup) + segment.first;
  }

  // With feedback the residual is kept without the loss scale.
  runtime::Operation select(LayerId layer, const GradientSegment& segment,
                            std::span<std::byte> gradient, double loss_scale) const {
    runtime::OperationLabel label;
    label.stage = stages::Stage::compress;
    label.layer = layer;
    label.subgroup = segment.subgroup;
    label.size_bytes = segment.count * bytes_of(parts_.options.gradient_kind);
    return parts_.kernels.compress(label, segment.count, [this, &segment, gradient, loss_scale] {
      const optimizer::GradientKind kind = parts_.options.gradient_kind;
      parts_.memory.compress().select(segment, flat_first(segment),
                                      gradient.data() + segment.layer_offset * bytes_of(kind), kind,
                                      static_cast<float>(1 / loss_scale));
      return ok_status();
    });
  }

  runtime::Task<Status> send_subgroup(SubgroupId subgroup, StepUpdate& update,
                                      runtime::TaskGroup& writes) {
    if (parts_.store.is_in_memory()) {
      Status encoded = co_await encode(subgroup, parts_.store.memory(subgroup), update);
      if (encoded.ok()) update.on_chunk_down(subgroup);
      co_return encoded;
    }
    Result<runtime::Pool::Lease> buffer = co_await buffers_.acquire(
        waiting_for("a buffer for a sparse gradient", kNoDevice, subgroup));
    CO_RETURN_IF_ERROR(buffer);
    Status encoded = co_await encode(subgroup, buffers_.bytes(*buffer), update);
    CO_RETURN_IF_ERROR(encoded);
    writes.spawn(write(subgroup, std::move(*buffer), update));
    co_return ok_status();
  }

  runtime::Operation encode(SubgroupId subgroup, std::span<std::byte> bytes,
                            StepUpdate& update) const {
    runtime::OperationLabel label;
    label.stage = stages::Stage::stage_gradient;
    label.subgroup = subgroup;
    const std::int64_t kept_count = parts_.format.kept_count(subgroup);
    csd::GradientChunkCheck& check = update.gradient_checks[subgroup][0];
    return parts_.kernels.stage(label, kept_count, [this, subgroup, kept_count, bytes, &check] {
      const std::int64_t size_bytes = compress::encode_sparse_gradient(
          parts_.memory.compress().kept(parts_.format.kept_first(subgroup), kept_count),
          parts_.geometry.element_count(subgroup), parts_.options.wire_gradient_kind(), bytes);
      check = {0, size_bytes, state::checksum(bytes.first(static_cast<std::size_t>(size_bytes)))};
      return ok_status();
    });
  }

  runtime::Task<Status> write(SubgroupId subgroup, runtime::Pool::Lease buffer,
                              StepUpdate& update) {
    Status status = co_await parts_.store.write(subgroup, 0, buffers_.bytes(buffer),
                                                parts_.format.size_bytes(subgroup));
    if (status.ok()) update.on_chunk_down(subgroup);
    co_return status;
  }

  GradientParts parts_;
  BufferPool buffers_;
  IdVector<SubgroupId, std::int32_t> segment_count_;
  IdVector<SubgroupId, std::int32_t> segments_to_come_;  // in this step
};

}  // namespace

std::unique_ptr<GradientRoute> make_sparse_route(const GradientParts& parts) {
  return std::make_unique<SparseRoute>(parts);
}

}  // namespace sluice::offload
