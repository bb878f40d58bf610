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

SetSizes set_sizes(const OffloadOptions& options, const state::Geometry& geometry) {
  CHECK_LE(geometry.variable_count, optimizer::kMaxStateArrays);
  const std::int64_t elements = std::min(geometry.subgroup_elements, geometry.parameter_count);
  const bool parameters_go_up_16bit = options.method == Method::csd && options.wire == Wire::native;
  return {geometry.variable_count, round_up(elements * 4, kPageBytes),
          options.gradient_tier == GradientTier::memory
              ? 0
              : round_up(elements * optimizer::bytes_of(options.wire_gradient_kind()), kPageBytes),
          parameters_go_up_16bit ? round_up(elements * 2, kPageBytes) : 0};
}

std::int64_t layer_gradient_bytes(const OffloadOptions& options, const model::FlatLayout& layout) {
  return round_up(layout.largest_layer_elements() * optimizer::bytes_of(options.gradient_kind),
                  kPageBytes);
}

std::int64_t gradient_bytes(const OffloadOptions& options, const state::Geometry& geometry,
                            SubgroupId subgroup) {
  if (options.gradient_tier == GradientTier::storage) return 0;
  return round_up(
      geometry.element_count(subgroup) * optimizer::bytes_of(options.wire_gradient_kind()),
      kPageBytes);
}

}  // namespace

OffloadMemoryPlan plan_offload_memory(const OffloadOptions& options,
                                      const state::Geometry& geometry,
                                      const model::FlatLayout& layout) {
  const SetSizes sizes = set_sizes(options, geometry);
  OffloadMemoryPlan plan;
  plan.layer_gradient_bytes = kLayerGradientCount * layer_gradient_bytes(options, layout);
  plan.bounce_bytes = options.bounce_count * options.bounce_bytes + kPageBytes;
  for (std::int32_t s = 0; s < geometry.subgroup_count(); ++s) {
    plan.gradient_store_bytes += gradient_bytes(options, geometry, SubgroupId{s});
  }
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
                                          csd::DeviceMemory& device_memory) {
  const SetSizes sizes = set_sizes(options, geometry);
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
  RETURN_IF_ERROR(memory->take_gradients(options, geometry));
  for (csd::DeviceMemory& device_memory : device_memories) {
    std::vector<BufferSet>& sets = memory->sets_.emplace_back();
    for (std::int32_t i = 0; i < options.set_count(); ++i) {
      ASSIGN_OR_RETURN(BufferSet set, memory->take_set(options, geometry, device_memory));
      sets.push_back(set);
    }
  }
  return memory;
}

Status OffloadMemory::take_gradients(const OffloadOptions& options,
                                     const state::Geometry& geometry) {
  const std::int32_t count = geometry.subgroup_count();
  gradients_.resize(static_cast<std::size_t>(count));
  if (options.gradient_tier == GradientTier::storage || payload_ == csd::Payload::none) {
    return ok_status();
  }
  std::int64_t size_bytes = 0;
  for (std::int32_t s = 0; s < count; ++s) {
    size_bytes += gradient_bytes(options, geometry, SubgroupId{s});
  }
  // Nothing transfers it, so it is not among the regions that are registered for transfers.
  ASSIGN_OR_RETURN(gradient_store_, io::PageAlignedBuffer::allocate(size_bytes));
  std::span<std::byte> rest = gradient_store_.bytes();
  for (std::int32_t s = 0; s < count; ++s) {
    const auto bytes = static_cast<std::size_t>(gradient_bytes(options, geometry, SubgroupId{s}));
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
