#pragma once
// parameter_tier=storage: where the parameters lie on the drives, in which pieces a layer is
// read, and what each piece has been summed to. A subgroup's parameters lie as a whole, from a page
// on, in `parameters.slc` of the device that updates it; they are written there by the update, and
// read by layers.
//
// Thread contract: the schedule's thread, but for the checksums, which the worker that updates a
// subgroup writes while the operation is awaited.

#include <span>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/csd/update_task.h"
#include "core/model/flat_layout.h"
#include "core/offload/base_cut.h"
#include "core/offload/offload_options.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// The part of the parameters that is in host memory. In bytes of whole pages, as all here.
struct ParameterWindow {
  std::int64_t table_bytes = 0;   // of an embedding that is whole: from its forward to its backward
  std::int64_t widest_bytes = 0;  // of the other layers
  std::int64_t buffer_bytes = 0;  // what the other layers may take
  std::int64_t total_bytes() const { return table_bytes + buffer_bytes; }
};
// The pages that a layer of the flat array lies in, those that it shares with others included.
std::int64_t page_bytes(const model::LayerRange& layer, ParameterKind kind);
ParameterWindow plan_parameter_window(const model::FlatLayout& layout,
                                      const OffloadOptions& options);
// In a run's memory plan, wherever they are.
std::int64_t parameter_memory_bytes(const model::FlatLayout& layout, const OffloadOptions& options);
// Bytes of a device's file; 0 with parameter_tier=memory.
std::int64_t parameter_file_bytes(const state::Geometry& geometry,
                                  const state::DeviceMap& device_map, DeviceId device,
                                  const OffloadOptions& options);

// `device_shares`: as state::make_device_map() has them, one a device.
BaseCut cut_base(model::FlatLayout layout, const std::vector<double>& device_shares,
                 const OffloadOptions& options);
// Bytes of a device's file behind those of the trained parameters; null: 0.
std::int64_t base_file_bytes(const BaseCut* base, DeviceId device, const OffloadOptions& options);

class ParameterStore {
 public:
  // The read of one transfer: a stretch of one subgroup's parameters, of one layer.
  struct Piece {
    SubgroupId subgroup = kNoSubgroup;
    std::int32_t stretch = 0;        // of the subgroup
    std::int64_t first_element = 0;  // in the flat array
  };
  // `begin_bytes`: where they begin in each device's file; empty: at its front.
  ParameterStore(const model::FlatLayout& layout, const state::Geometry& geometry,
                 const state::DeviceMap& device_map, const OffloadOptions& options,
                 const IdVector<DeviceId, std::int64_t>& begin_bytes = {});

  // Where the subgroup's parameters begin in its device's file.
  std::int64_t offset_bytes(SubgroupId subgroup) const { return offset_bytes_[subgroup]; }
  // The subgroup's parameters, in order and without gaps. Empty with parameter_tier=memory.
  std::span<csd::ParameterStretch> stretches(SubgroupId subgroup) { return stretches_[subgroup]; }
  std::span<const Piece> pieces(LayerId layer) const { return pieces_[layer]; }

 private:
  void cut(LayerId layer, SubgroupId subgroup, std::int64_t first_byte, std::int64_t end_byte,
           std::int64_t subgroup_byte, std::int64_t piece_bytes);

  std::int64_t element_bytes_;
  IdVector<SubgroupId, std::int64_t> offset_bytes_;
  IdVector<SubgroupId, std::vector<csd::ParameterStretch>> stretches_;
  IdVector<LayerId, std::vector<Piece>> pieces_;
};

}  // namespace sluice::offload
