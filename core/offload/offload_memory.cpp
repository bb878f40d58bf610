#include "core/offload/offload_memory.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::offload {
namespace {

struct SetSizes {
  std::int32_t variable_count;
  std::int64_t variable_bytes;
  std::int64_t gradient_bytes;
  std::int64_t parameter_bytes;
  std::int64_t total() const {
    return variable_count * variable_bytes + gradient_bytes + parameter_bytes;
  }
};

SetSizes set_sizes(const OffloadOptions& options, const state::Geometry& geometry,
                   const GradientFormat& format) {
  CHECK_LE(geometry.variable_count, optimizer::kMaxStateArrays);
  const std::int64_t elements = std::min(geometry.subgroup_elements, geometry.parameter_count);
  const bool parameters_go_up_16bit = options.method == Method::csd && options.wire == Wire::native;
  return {geometry.variable_count, round_up(elements * 4, kPageBytes),
          options.gradient_tier == GradientTier::memory
              ? 0
              : round_up(format.largest_bytes(), kPageBytes),
          parameters_go_up_16bit ? round_up(elements * 2, kPageBytes) : 0};
}

std::int64_t layer_gradient_bytes(const OffloadOptions& options, const model::FlatLayout& layout) {
  return round_up(layout.largest_layer_elements() * optimizer::bytes_of(options.gradient_kind),
                  kPageBytes);
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
  const SetSizes sizes = set_sizes(options, geometry, format);
  OffloadMemoryPlan plan;
  plan.layer_gradient_bytes = kLayerGradientCount * layer_gradient_bytes(options, layout);
  plan.bounce_bytes = options.bounce_count * options.bounce_bytes + kPageBytes;
  plan.gradient_store_bytes = gradient_store_bytes(options, format, geometry.subgroup_count());
  plan.compress_bytes = CompressMemory::work_bytes(options, format) +
                        kSparseBufferCount * sparse_buffer_bytes(options, format);
  plan.residual_bytes = CompressMemory::residual_bytes(options, geometry);
  plan.set_bytes = sizes.total();
  if (options.method == Method::host) {
    plan.host_set_bytes = sizes.total() * options.set_count() * geometry.device_count;
  } else {
    plan.device_set_bytes = sizes.total() * options.set_count();
  }
  return plan;
}

Result<std::span<std::byte>> OffloadMemory::take_host(std::int64_t size_bytes) {
  if (payload_ == csd::Payload::none) return std::span<std::byte>();
  ASSIGN_OR_RETURN(io::PageAlignedBuffer buffer, io::PageAlignedBuffer::allocate(size_bytes));
  host_buffers_.push_back(std::move(buffer));
  return host_buffers_.back().bytes();
}

Result<BufferSet> OffloadMemory::take_set(const OffloadOptions& options,
                                          const state::Geometry& geometry,
                                          const GradientFormat& format,
                                          csd::DeviceMemory& device_memory) {
  const SetSizes sizes = set_sizes(options, geometry, format);
  const auto take = [&](std::int64_t size_bytes) -> Result<std::span<std::byte>> {
    if (options.method == Method::host) return take_host(size_bytes);
    ASSIGN_OR_RETURN(const csd::DeviceBuffer buffer, device_memory.allocate(size_bytes));
    return buffer.bytes;
  };
  BufferSet set;
  for (std::int32_t v = 0; v < geometry.variable_count; ++v) {
    ASSIGN_OR_RETURN(set.state[at(v)], take(sizes.variable_bytes));
  }
  if (sizes.gradient_bytes > 0) {
    ASSIGN_OR_RETURN(set.gradient, take(sizes.gradient_bytes));
  }
  if (sizes.parameter_bytes > 0) {
    ASSIGN_OR_RETURN(set.parameters, take(sizes.parameter_bytes));
  }
  return set;
}

Result<std::unique_ptr<OffloadMemory>> OffloadMemory::make(
    const OffloadOptions& options, const state::Geometry& geometry, const model::FlatLayout& layout,
    std::vector<csd::DeviceMemory>& device_memories, csd::Payload payload) {
  std::unique_ptr<OffloadMemory> memory(new OffloadMemory(payload));
  for (std::int32_t i = 0; i < kLayerGradientCount; ++i) {
    ASSIGN_OR_RETURN(std::span<std::byte> buffer,
                     memory->take_host(layer_gradient_bytes(options, layout)));
    memory->layer_gradients_.push_back(buffer);
  }
  for (std::int32_t i = 0; i < options.bounce_count; ++i) {
    ASSIGN_OR_RETURN(std::span<std::byte> buffer, memory->take_host(options.bounce_bytes));
    memory->bounces_.push_back(buffer);
  }
  ASSIGN_OR_RETURN(memory->carry_, memory->take_host(kPageBytes));
  const GradientFormat format(options, layout, geometry);
  RETURN_IF_ERROR(memory->take_sparse_buffers(options, format));
  if (format.is_sparse() && payload == csd::Payload::real) {
    memory->compress_.emplace(options, format, geometry);
  }
  RETURN_IF_ERROR(memory->take_gradients(options, format, geometry.subgroup_count()));
  for (csd::DeviceMemory& device_memory : device_memories) {
    std::vector<BufferSet>& sets = memory->sets_.emplace_back();
    for (std::int32_t i = 0; i < options.set_count(); ++i) {
      ASSIGN_OR_RETURN(BufferSet set, memory->take_set(options, geometry, format, device_memory));
      sets.push_back(set);
    }
  }
  return memory;
}

Status OffloadMemory::take_sparse_buffers(const OffloadOptions& options,
                                          const GradientFormat& format) {
  const std::int64_t size_bytes = sparse_buffer_bytes(options, format);
  if (size_bytes == 0) return ok_status();
  for (std::int32_t i = 0; i < kSparseBufferCount; ++i) {
    ASSIGN_OR_RETURN(std::span<std::byte> buffer, take_host(size_bytes));
    sparse_buffers_.push_back(buffer);
  }
  return ok_status();
}

Status OffloadMemory::take_gradients(const OffloadOptions& options, const GradientFormat& format,
                                     std::int32_t subgroup_count) {
  gradients_.resize(static_cast<std::size_t>(subgroup_count));
  const std::int64_t size_bytes = gradient_store_bytes(options, format, subgroup_count);
  if (size_bytes == 0 || payload_ == csd::Payload::none) return ok_status();
  // Nothing transfers it, so it is not among the regions that are registered for transfers.
  ASSIGN_OR_RETURN(gradient_store_, io::PageAlignedBuffer::allocate(size_bytes));
  std::span<std::byte> rest = gradient_store_.bytes();
  for (std::int32_t s = 0; s < subgroup_count; ++s) {
    const auto bytes =
        static_cast<std::size_t>(round_up(format.size_bytes(SubgroupId{s}), kPageBytes));
    gradients_[at(s)] = rest.first(bytes);
    rest = rest.subspan(bytes);
  }
  return ok_status();
}

std::vector<std::span<std::byte>> OffloadMemory::transfer_regions() {
  std::vector<std::span<std::byte>> regions;
  // Not the layers' gradients, which never leave memory as they are.
  for (std::size_t i = kLayerGradientCount; i < host_buffers_.size(); ++i) {
    regions.push_back(host_buffers_[i].bytes());
  }
  return regions;
}

}  // namespace sluice::offload
