#pragma once
// How the sum of squares of each subgroup is made (overlap=local), beside that of all gradients.
//
// The norm's blocks (core/optimizer/gradient_stats.h) are those of a layer; a subgroup's borders
// lie anywhere in them. A block that a border cuts is summed as a whole, for the norm of all, and
// once more in *parts*, each from its own first element on as a block is. A *segment* is the
// elements of one layer in one subgroup, at most a part, whole blocks and a part:
//
//   sum of a segment    its part before the first whole block, its whole blocks, its part after
//                       them, added in this order
//   sum of a subgroup   its segments, added from the lowest layer up
//
// So a subgroup's sum is of its own elements alone, and follows from the model's layers and
// subgroup_elements: it does not depend on method, pipeline, devices, threads, or on who sums.
//
// Thread contract: immutable after the constructor.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/model/flat_layout.h"
#include "core/offload/offload_options.h"
#include "core/optimizer/gradient_stats.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// Elements of a layer, within one block, that are summed apart from the rest of the block.
struct NormPart {
  std::int64_t layer_offset = 0;
  std::int64_t count = 0;
};

class NormPlan {
 public:
  // Where a segment is.
  struct Place {
    LayerId layer = kNoLayer;
    SubgroupId subgroup = kNoSubgroup;
  };

  NormPlan(const model::FlatLayout& layout, const state::Geometry& geometry);

  // The parts that are summed beside the layer's blocks, in flat order.
  std::span<const NormPart> parts(LayerId layer) const { return layers_[layer].parts; }
  // Their elements, which are summed twice.
  std::int64_t part_elements(LayerId layer) const;
  // Sums of a layer: its blocks', and behind them its parts'.
  std::int64_t sum_count(LayerId layer) const {
    return layers_[layer].block_count + std::ssize(layers_[layer].parts);
  }
  std::int64_t largest_sum_count() const;
  std::int32_t segment_count() const { return segment_count_; }

  // The sums of a layer's gradient, all elements of it, into the first sum_count(layer) of `sums`.
  void sum_squares(LayerId layer, const std::byte* gradient, optimizer::GradientKind kind,
                   std::span<double> sums) const;
  // A layer's sums as statistics: of the layer, and of its segments, which are those in flat order
  // among the segment_count() of the model.
  optimizer::GradientStats add_up(LayerId layer, std::span<const double> sums,
                                  std::span<optimizer::GradientStats> segments) const;
  // A subgroup's statistics, from those of all segments.
  optimizer::GradientStats add_up(SubgroupId subgroup,
                                  std::span<const optimizer::GradientStats> segments) const;
  // The one that backward came to first of those that are not finite.
  std::optional<Place> not_finite(std::span<const optimizer::GradientStats> segments) const;

 private:
  struct Segment {
    SubgroupId subgroup = kNoSubgroup;
    std::int64_t first_block = 0;  // whole ones
    std::int64_t block_count = 0;
    std::int32_t part_before = -1;  // number among the layer's parts; -1: none
    std::int32_t part_after = -1;
  };
  struct Layer {
    std::int64_t element_count = 0;
    std::int64_t block_count = 0;
    std::vector<NormPart> parts;
    std::vector<Segment> segments;
    std::int32_t first_segment = 0;  // of the model
  };
  static Segment cut(Layer& layer, SubgroupId subgroup, std::int64_t first, std::int64_t end);

  IdVector<LayerId, Layer> layers_;
  IdVector<SubgroupId, std::int32_t> first_segment_;  // and the total behind the last
  std::int32_t segment_count_ = 0;
};

// Empty but where subgroups have norms of their own: with overlap=local.
std::optional<NormPlan> norm_plan(const OffloadOptions& options, const model::FlatLayout& layout,
                                  const state::Geometry& geometry);

}  // namespace sluice::offload
