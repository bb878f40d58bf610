#pragma once
// The form of a subgroup's gradient on its way to the update: dense in the wire's kind, or, with a
// density below 1, sparse (docs/sparse_gradient_format.md).
//
// Gradients arrive a layer at a time, from the last layer to the first, so the largest elements are
// selected among those of one layer in one subgroup, a *segment*: kept_count(density, count) of
// each. How many are kept, and so every size and every byte that moves, follows from the model's
// shape alone.
//
// Thread contract: immutable.

#include <cstdint>
#include <span>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/model/flat_layout.h"
#include "core/offload/offload_options.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// Elements of one layer in one subgroup.
struct GradientSegment {
  SubgroupId subgroup = kNoSubgroup;
  std::int64_t first = 0;  // element of the subgroup
  std::int64_t count = 0;
  std::int64_t layer_offset = 0;  // element of the layer
  std::int64_t kept_first = 0;    // of all that the model keeps, in flat order
  std::int64_t kept_count = 0;
};

class GradientFormat {
 public:
  GradientFormat(const OffloadOptions& options, const model::FlatLayout& layout,
                 const state::Geometry& geometry);

  bool is_sparse() const { return is_sparse_; }
  // Without the padding to whole pages.
  std::int64_t size_bytes(SubgroupId subgroup) const { return size_bytes_[subgroup]; }
  std::int64_t largest_bytes() const;

  // Sparse only. Descending; the segment with first == 0 is the last of its subgroup to arrive.
  std::span<const GradientSegment> segments(LayerId layer) const { return segments_[layer]; }
  std::int64_t kept_first(SubgroupId subgroup) const { return kept_first_[subgroup]; }
  std::int64_t kept_count(SubgroupId subgroup) const {
    return kept_first_[SubgroupId{index_of(subgroup) + 1}] - kept_first(subgroup);
  }
  // The first that a layer keeps; all that it keeps lie one behind the other.
  std::int64_t kept_first(LayerId layer) const { return segments_[layer].back().kept_first; }
  std::int64_t kept_count(LayerId layer) const;
  std::int64_t kept_count() const { return kept_first_.empty() ? 0 : kept_first_.back(); }
  std::int64_t largest_segment_elements() const;
  std::int64_t largest_segment_kept() const;

 private:
  void cut(const model::FlatLayout& layout, const state::Geometry& geometry, double density);

  bool is_sparse_ = false;
  IdVector<SubgroupId, std::int64_t> size_bytes_;
  IdVector<LayerId, std::vector<GradientSegment>> segments_;
  IdVector<SubgroupId, std::int64_t> kept_first_;  // and the total behind the last
};

}  // namespace sluice::offload
