#include "core/offload/offload_memory.h"

#include <algorithm>

#include "base/check.h"
#include "core/offload/norm_plan.h"
#include "core/optimizer/gradient_stats.h"

namespace sluice::offload {
namespace {

SetSizes sizes_of_set(const OffloadOptions& options, const state::Geometry& geometry,
                      const GradientFormat& format) {
  const std::int64_t elements = std::min(geometry.subgroup_elements, geometry.parameter_count);
  const bool has_copy =
      options.has_16bit_copy() && (options.streams_parameters() ||
                                   (options.method == Method::csd && options.wire == Wire::native));
  SetSizes sizes;
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    sizes.state_bytes[static_cast<std::size_t>(v)] =
        round_up(geometry.array_bytes(v, elements), kPageBytes);
  }
  if (options.gradient_tier == GradientTier::storage) {
    sizes.gradient_bytes = round_up(format.largest_bytes(), kPageBytes);
  }
  if (has_copy) sizes.parameter_bytes = round_up(elements * 2, kPageBytes);
  return sizes;
}

// A gradient that an accelerator selects from does not come to the host.
std::int64_t layer_gradient_bytes(const OffloadOptions& options, const model::FlatLayout& layout) {
  if (options.is_sparse() && options.works_on_accelerator()) return 0;
  return round_up(layout.largest_layer_elements() * optimizer::bytes_of(options.gradient_kind),
                  kPageBytes);
}

std::int64_t block_sum_bytes(const OffloadOptions& options, const state::Geometry& geometry,
                             const model::FlatLayout& layout) {
  if (!options.sums_come()) return 0;
  if (const auto plan = norm_plan(options, layout, geometry)) return plan->largest_sum_count() * 8;
  return optimizer::norm_block_count(layout.largest_layer_elements()) * 8;
}

// One of them waits in memory until its drive has taken it.
std::int64_t sparse_buffer_bytes(const OffloadOptions& options, const GradientFormat& format) {
  if (!format.is_sparse() || options.gradient_tier == GradientTier::memory) return 0;
  return round_up(format.largest_bytes(), kPageBytes);
}

std::int64_t gradient_store_bytes(const OffloadOptions& options, const GradientFormat& format,
                                  std::int32_t subgroup_count) {
  if (options.gradient_tier == GradientTier::storage) return 0;
  std::int64_t size_bytes = 0;
  for (std::int32_t s = 0; s < subgroup_count; ++s) {
    size_bytes += round_up(format.size_bytes(SubgroupId{s}), kPageBytes);
  }
  return size_bytes;
}

}  // namespace

OffloadMemoryPlan plan_offload_memory(const OffloadOptions& options,
                                      const state::Geometry& geometry,
                                      const model::FlatLayout& layout) {
  const GradientFormat format(options, layout, geometry);
  const SetSizes sizes = sizes_of_set(options, geometry, format);
  OffloadMemoryPlan plan;
  plan.layer_gradient_bytes = kLayerGradientCount * layer_gradient_bytes(options, layout) +
                              block_sum_bytes(options, geometry, layout);
  plan.bounce_bytes = options.bounce_count * options.bounce_bytes + kPageBytes;
  plan.gradient_store_bytes = gradient_store_bytes(options, format, geometry.subgroup_count());
  plan.compress_bytes = CompressMemory::work_bytes(options, format) +
                        kSparseBufferCount * sparse_buffer_bytes(options, format);
  plan.residual_bytes = CompressMemory::residual_bytes(options, geometry);
  plan.set_bytes = sizes.total_bytes();
  if (options.method == Method::host) {
    plan.host_set_bytes = sizes.total_bytes() * options.set_count() * geometry.device_count;
  } else {
    plan.device_set_bytes = sizes.total_bytes() * options.set_count();
    plan.parameter_copy_bytes = sizes.parameter_bytes * options.set_count();
  }
  return plan;
}

MemoryItems memory_items(const OffloadMemoryPlan& plan, const OffloadOptions& options,
                         std::int32_t device_count, DeviceMemoryIs device_memory) {
  const MemoryItem devices =
      device_memory == DeviceMemoryIs::host
          ? MemoryItem{fmt::format("memory of {} emulated devices, {} buffer sets each",
                                   device_count, options.set_count()),
                       plan.device_set_bytes * device_count}
          : MemoryItem{fmt::format("copies of what {} devices send up", device_count),
                       plan.parameter_copy_bytes * device_count};
  return {{fmt::format("gradients of {} layers", kLayerGradientCount), plan.layer_gradient_bytes},
          {"bounce buffers", plan.bounce_bytes},
          {"gradients of all layers (gradient_tier=memory)", plan.gradient_store_bytes},
          {"compression (density)", plan.compress_bytes},
          {"residual (error_feedback)", plan.residual_bytes},
          {fmt::format("{} buffer sets a device, {} devices", options.set_count(), device_count),
           plan.host_set_bytes},
          devices};
}

Result<io::PageAlignedBuffer> OffloadMemory::take(std::int64_t size_bytes) const {
  if (payload_ == csd::Payload::none) return io::PageAlignedBuffer();
  return io::PageAlignedBuffer::allocate(size_bytes);
}

Result<std::span<std::byte>> OffloadMemory::take_own(std::int64_t size_bytes) {
  if (size_bytes == 0 || payload_ == csd::Payload::none) return std::span<std::byte>();
  ASSIGN_OR_RETURN(io::PageAlignedBuffer buffer, take(size_bytes));
  buffers_.push_back(std::move(buffer));
  return buffers_.back().bytes();
}

Result<std::vector<std::span<std::byte>>> OffloadMemory::take_own(std::int32_t count,
                                                                  std::int64_t size_bytes) {
  std::vector<std::span<std::byte>> buffers;
  for (std::int32_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(std::span<std::byte> buffer, take_own(size_bytes));
    buffers.push_back(buffer);
  }
  return buffers;
}

Result<std::unique_ptr<OffloadMemory>> OffloadMemory::make(
    const OffloadOptions& options, const state::Geometry& geometry, const model::FlatLayout& layout,
    const GradientFormat& format, csd::Payload payload, io::PinnedMemory& pinned) {
  std::unique_ptr<OffloadMemory> memory(new OffloadMemory(payload));
  memory->set_sizes_ = sizes_of_set(options, geometry, format);
  RETURN_IF_ERROR(memory->take_layer_gradients(layer_gradient_bytes(options, layout), pinned));
  ASSIGN_OR_RETURN(memory->bounces_, memory->take_own(options.bounce_count, options.bounce_bytes));
  ASSIGN_OR_RETURN(memory->carry_, memory->take_own(kPageBytes));
  ASSIGN_OR_RETURN(memory->sparse_buffers_,
                   memory->take_own(kSparseBufferCount, sparse_buffer_bytes(options, format)));
  if (payload == csd::Payload::real) {
    RETURN_IF_ERROR(memory->take_accelerator_results(options, geometry, layout, pinned));
    RETURN_IF_ERROR(memory->take_compress(options, geometry, format, pinned));
  }
  RETURN_IF_ERROR(memory->take_gradients(options, format, geometry.subgroup_count()));
  return memory;
}

Status OffloadMemory::take_layer_gradients(std::int64_t size_bytes, io::PinnedMemory& pinned) {
  for (std::int32_t i = 0; i < kLayerGradientCount; ++i) {
    if (payload_ == csd::Payload::none || size_bytes == 0) {
      layer_gradients_.emplace_back();
      continue;
    }
    ASSIGN_OR_RETURN(io::PinnedBuffer buffer, pinned.allocate(size_bytes));
    layer_gradients_.push_back(buffer.bytes());
    pinned_.push_back(std::move(buffer));
  }
  return ok_status();
}

Status OffloadMemory::take_accelerator_results(const OffloadOptions& options,
                                               const state::Geometry& geometry,
                                               const model::FlatLayout& layout,
                                               io::PinnedMemory& pinned) {
  const std::int64_t size_bytes = block_sum_bytes(options, geometry, layout);
  if (size_bytes == 0) return ok_status();
  ASSIGN_OR_RETURN(io::PinnedBuffer buffer, pinned.allocate(size_bytes));
  block_sums_ = {reinterpret_cast<double*>(buffer.bytes().data()),
                 static_cast<std::size_t>(size_bytes / 8)};
  pinned_.push_back(std::move(buffer));
  return ok_status();
}

Status OffloadMemory::take_compress(const OffloadOptions& options, const state::Geometry& geometry,
                                    const GradientFormat& format, io::PinnedMemory& pinned) {
  if (!format.is_sparse()) return ok_status();
  ASSIGN_OR_RETURN(io::PinnedBuffer kept, pinned.allocate(CompressMemory::kept_bytes(format)));
  compress_.emplace(options, format, geometry, kept.bytes());
  pinned_.push_back(std::move(kept));
  return ok_status();
}

Status OffloadMemory::take_gradients(const OffloadOptions& options, const GradientFormat& format,
                                     std::int32_t subgroup_count) {
  gradients_.resize(subgroup_count);
  const std::int64_t size_bytes = gradient_store_bytes(options, format, subgroup_count);
  if (size_bytes == 0 || payload_ == csd::Payload::none) return ok_status();
  // Nothing transfers it, so it is not among the regions that are registered for transfers.
  ASSIGN_OR_RETURN(gradient_store_, io::PageAlignedBuffer::allocate(size_bytes));
  std::span<std::byte> rest = gradient_store_.bytes();
  for (const SubgroupId subgroup : ids_of(gradients_)) {
    const auto bytes = static_cast<std::size_t>(round_up(format.size_bytes(subgroup), kPageBytes));
    gradients_[subgroup] = rest.first(bytes);
    rest = rest.subspan(bytes);
  }
  return ok_status();
}

std::vector<std::span<std::byte>> OffloadMemory::transfer_regions() {
  std::vector<std::span<std::byte>> regions;
  // Not the layers' gradients, which no drive is sent as they are.
  for (io::PageAlignedBuffer& buffer : buffers_) regions.push_back(buffer.bytes());
  return regions;
}

}  // namespace sluice::offload
