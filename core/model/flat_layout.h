#pragma once
// The model's parameters as one flat array: every tensor, in a fixed order, one after the other
// without gaps. Layers are consecutive: 0 = embedding, 1..L = blocks, L+1 = head; forward goes up,
// backward comes down, so the gradients of a layer are one contiguous range and arrive in
// descending order. Wide tables are several layers (layer_places.h).
//
// Thread contract: plain data.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace sluice::model {

struct TensorInfo {
  std::string name;  // Hugging Face's, e.g. "h.0.attn.c_attn.weight"
  std::vector<std::int64_t> shape;
  std::int64_t first = 0;  // in the flat array, elements
  std::int64_t count = 0;
  LayerId layer = kNoLayer;  // the first that has any of it
  enum class Init : std::uint8_t { zeros, ones, normal, uniform } init = Init::zeros;
  double init_std = 0;  // of uniform values the bound on either side of 0
};

struct LayerRange {
  std::string name;  // "embedding", "h.0", ..., "head"
  std::int64_t first = 0;
  std::int64_t count = 0;
  // Elements of the layer before and behind these, where one rank of many holds a stretch of each
  // layer (core/shard/share.h). A stretch may be empty.
  std::int64_t before = 0;
  std::int64_t behind = 0;

  std::int64_t layer_elements() const { return before + count + behind; }
};

struct FlatLayout {
  std::vector<TensorInfo> tensors;  // of stretches none
  std::vector<LayerRange> layers;
  std::int64_t parameter_count = 0;
  // The first layer's parameters are used from its forward to its backward: the head may need its
  // tables.
  bool first_stays = true;

  std::int32_t layer_count() const { return static_cast<std::int32_t>(layers.size()); }
  const LayerRange& layer(LayerId id) const { return layers[index_of(id)]; }
  std::int64_t largest_layer_elements() const;  // of whole layers
  bool stays(LayerId id) const { return first_stays && index_of(id) == 0; }
  std::int64_t staying_elements() const { return first_stays ? layers.front().count : 0; }
  std::int64_t largest_passing() const;  // of the layers that do not stay
  std::uint64_t fingerprint() const;     // of names and shapes in order (FNV-1a)
};

// Those of a tensor that a layer has.
std::int64_t elements_within(const TensorInfo& tensor, const LayerRange& layer);

// Initial values of flat elements [first, first + out.size()): a function of seed, tensor name and
// index only, so that any part can be made anywhere in bounded memory. Values are in double from a
// counter-based generator (SplitMix64), normal ones by Box-Muller.
void fill_initial(const FlatLayout& layout, std::uint64_t seed, std::int64_t first,
                  std::span<float> out);

}  // namespace sluice::model
