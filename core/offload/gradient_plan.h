#pragma once
// How the gradients of a layer become page-aligned writes to the drives that own them.
//
// Layers arrive from the last to the first, and each is a contiguous range of the flat parameters.
// A subgroup's gradients lie at the start of a page of their own, so a write may begin only at a
// multiple of a page's elements; where a layer begins inside a page, the elements below the next
// boundary wait as the *carry* (less than one page, of one subgroup at a time) for the layer below
// to complete them. So every gradient is written once, no page twice, and the only padding is
// behind the last element of a subgroup.
//
// Thread contract: immutable after make().

#include <cstdint>
#include <vector>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/model/flat_layout.h"
#include "storage/state/state_layout.h"

namespace sluice::offload {

// One write: `count` elements of a subgroup from `first`; the first `layer_count` of them are this
// layer's, from `layer_offset`; the rest is the carry.
struct GradientChunk {
  SubgroupId subgroup = kNoSubgroup;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t layer_offset = 0;
  std::int64_t layer_count = 0;
  std::int32_t check_index = 0;  // which of the subgroup's chunks this is
};

struct LayerGradientPlan {
  std::vector<GradientChunk> chunks;  // descending
  // The rest of the layer after the chunks: its first `carry_count` elements become the carry, in
  // front of the `carry_kept_count` that were there (0 unless the layer was too short for a write).
  std::int64_t carry_count = 0;
  std::int64_t carry_kept_count = 0;
};

struct GradientPlan {
  IdVector<LayerId, LayerGradientPlan> layers;
  IdVector<SubgroupId, std::int32_t> chunk_count;
  std::int64_t bounce_elements = 0;  // most elements of a chunk
};

// `element_bytes` is that of the wire; `bounce_bytes` a multiple of pages.
GradientPlan make_gradient_plan(const model::FlatLayout& layout, const state::Geometry& geometry,
                                int element_bytes, std::int64_t bounce_bytes);

}  // namespace sluice::offload
