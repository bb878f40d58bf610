#include "core/offload/parameter_store.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::offload {

std::int64_t page_bytes(const model::LayerRange& layer, ParameterKind kind) {
  const std::int64_t first_byte = layer.first * bytes_of(kind);
  const std::int64_t end_byte = first_byte + layer.count * bytes_of(kind);
  return round_up(end_byte, kPageBytes) - round_down(first_byte, kPageBytes);
}

ParameterWindow plan_parameter_window(const model::FlatLayout& layout,
                                      const OffloadOptions& options) {
  ParameterWindow window;
  std::int64_t all_bytes = 0;
  for (std::size_t l = 0; l < layout.layers.size(); ++l) {
    const std::int64_t size_bytes = page_bytes(layout.layers[l], options.parameter_kind);
    if (layout.stays(LayerId{static_cast<std::int32_t>(l)})) {
      window.table_bytes = size_bytes;
      continue;
    }
    window.widest_bytes = std::max(window.widest_bytes, size_bytes);
    all_bytes += size_bytes;
  }
  const std::int64_t asked_bytes = options.parameter_buffer_bytes;
  window.buffer_bytes = std::min(
      all_bytes, asked_bytes > 0 ? round_up(asked_bytes, kPageBytes) : 2 * window.widest_bytes);
  return window;
}

std::int64_t parameter_memory_bytes(const model::FlatLayout& layout,
                                    const OffloadOptions& options) {
  return options.streams_parameters() ? plan_parameter_window(layout, options).total_bytes()
                                      : layout.parameter_count * bytes_of(options.parameter_kind);
}

std::int64_t parameter_file_bytes(const state::Geometry& geometry,
                                  const state::DeviceMap& device_map, DeviceId device,
                                  const OffloadOptions& options) {
  std::int64_t size_bytes = 0;
  if (!options.streams_parameters()) return size_bytes;
  for (std::size_t s = 0; s < device_map.size(); ++s) {
    if (device_map[s] != device) continue;
    const SubgroupId subgroup{static_cast<std::int32_t>(s)};
    size_bytes +=
        round_up(geometry.element_count(subgroup) * bytes_of(options.parameter_kind), kPageBytes);
  }
  return size_bytes;
}

BaseCut cut_base(model::FlatLayout layout, const std::vector<double>& device_shares,
                 const OffloadOptions& options) {
  BaseCut cut;
  cut.geometry.parameter_count = layout.parameter_count;
  cut.geometry.subgroup_elements = options.bounce_bytes / bytes_of(options.parameter_kind);
  cut.geometry.variable_count = 1;
  cut.geometry.device_count = static_cast<std::int32_t>(device_shares.size());
  cut.device_map = state::make_device_map(cut.geometry.subgroup_count(), device_shares);
  cut.layout = std::move(layout);
  return cut;
}

std::int64_t base_file_bytes(const BaseCut* base, DeviceId device, const OffloadOptions& options) {
  if (base == nullptr) return 0;
  return parameter_file_bytes(base->geometry, base->device_map, device, options);
}

ParameterStore::ParameterStore(const model::FlatLayout& layout, const state::Geometry& geometry,
                               const state::DeviceMap& device_map, const OffloadOptions& options,
                               const IdVector<DeviceId, std::int64_t>& begin_bytes)
    : element_bytes_(bytes_of(options.parameter_kind)),
      offset_bytes_(geometry.subgroup_count()),
      stretches_(geometry.subgroup_count()),
      pieces_(layout.layer_count()) {
  if (!options.streams_parameters()) return;
  IdVector<DeviceId, std::int64_t> used_bytes(geometry.device_count);
  if (begin_bytes.count() > 0) used_bytes = begin_bytes;
  for (const SubgroupId subgroup : ids_of(offset_bytes_)) {
    std::int64_t& used = used_bytes[device_map[static_cast<std::size_t>(index_of(subgroup))]];
    offset_bytes_[subgroup] = used;
    used += round_up(geometry.element_count(subgroup) * element_bytes_, kPageBytes);
  }
  for (const LayerId layer : ids_of(pieces_)) {
    const model::LayerRange& range = layout.layer(layer);
    const std::int64_t end = range.first + range.count;
    for (std::int64_t first = range.first; first < end;) {
      const SubgroupId subgroup{static_cast<std::int32_t>(first / geometry.subgroup_elements)};
      const std::int64_t subgroup_first = geometry.first_element(subgroup);
      const std::int64_t next = std::min(end, subgroup_first + geometry.element_count(subgroup));
      cut(layer, subgroup, first * element_bytes_, next * element_bytes_,
          subgroup_first * element_bytes_, options.bounce_bytes);
      first = next;
    }
  }
}

// A piece with the page it begins in fits into a bounce buffer, and all but the first begin on a
// page.
void ParameterStore::cut(LayerId layer, SubgroupId subgroup, std::int64_t first_byte,
                         std::int64_t end_byte, std::int64_t subgroup_byte,
                         std::int64_t piece_bytes) {
  std::vector<csd::ParameterStretch>& stretches = stretches_[subgroup];
  for (std::int64_t first = first_byte; first < end_byte;) {
    const std::int64_t offset_bytes = first - subgroup_byte;
    const std::int64_t next =
        std::min(end_byte, subgroup_byte + round_down(offset_bytes, kPageBytes) + piece_bytes);
    pieces_[layer].push_back(
        {subgroup, static_cast<std::int32_t>(stretches.size()), first / element_bytes_});
    stretches.push_back({.offset_bytes = offset_bytes, .size_bytes = next - first});
    first = next;
  }
}

}  // namespace sluice::offload
