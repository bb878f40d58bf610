#pragma once
// The update rules of update_rule.h on state that is not fp32 (base/state_format.h): decoded,
// updated by the same formulas, encoded again. With the exact format state and copy are what they
// are in fp32, to the bit. Reference, SIMD kernel, emulated device and HLS kernel are bit-equal on
// every input, the compact format's rounding included.
//
// Thread contract: free functions; safe on disjoint ranges.

#include <string>
#include <vector>

#include "base/state_codec.h"
#include "core/optimizer/update_rule.h"

namespace sluice::optimizer {

// How the rule's state is stored, and the names of these arrays. With fp32 they are the rule's own;
// else `parameters` and `remainder` in place of `master_weights`. Of AdaGrad's sum, which only
// grows, the compact format keeps bf16: 8 bits would hold it fast once a step adds too little.
StoredArrays stored_arrays(RuleKind rule, const StateFormat& format);
std::vector<std::string> stored_names(RuleKind rule, const StateFormat& format);

// One subgroup's arrays, or whole blocks of it from one on. `state` is updated in place; its first
// array, the bf16 copy, is the parameters. The flat index is that in the whole model.
struct SplitArrays {
  StoredSpan state;
  const void* gradient = nullptr;
  GradientKind gradient_kind = GradientKind::fp32;
  CodeRounding rounding;
  std::int64_t first_flat_index = 0;  // a multiple of 64
};

// The definition: the codec's and the rule's, block by block.
void update_reference(const UpdateScalars& scalars, const SplitArrays& arrays);
// The fast kernel, on the calling thread.
void update(const UpdateScalars& scalars, const SplitArrays& arrays);

// The part [first, first + count): from a block on, and to a block or the end.
SplitArrays slice(const SplitArrays& arrays, std::int64_t first, std::int64_t count);

}  // namespace sluice::optimizer
