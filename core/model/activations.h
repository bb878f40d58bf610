#pragma once
// The tensors kept of each layer between its forward and its backward, and their place.
//
// Thread contract: plain data.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace sluice::model {

enum class Activations : std::uint8_t {
  keep,            // all of it, in memory
  recompute,       // the layer's input, in memory; the rest is computed again in backward
  offload,         // all of it, on the drives until backward needs it
  offload_inputs,  // the layer's input, on the drives; the rest is computed again in backward
};

constexpr bool is_recomputed(Activations choice) {
  return choice == Activations::recompute || choice == Activations::offload_inputs;
}
// Whether something of the layer leaves memory between forward and backward.
constexpr bool is_offloaded(Activations choice) {
  return choice == Activations::offload || choice == Activations::offload_inputs;
}

// One choice a layer. As text: "offload:1-3,recompute:4-7,keep" gives layers 1 to 3 the first, 4 to
// 7 the second and all others the last; a word alone is for all layers, and layers that no word is
// for keep.
class LayerActivations {
 public:
  LayerActivations() = default;
  LayerActivations(Activations of_all) : others_(of_all) {}  // so that a choice is one for all

  // Errors (ErrorCode::config): an unknown word, a range that is none, a layer that is named twice.
  static Result<LayerActivations> parse(std::string_view text);
  std::string text() const;  // what parse() reads back as the same

  Activations of(LayerId layer) const;
  // ErrorCode::config if a layer is named that is not among `layer_count`.
  Status check(std::int32_t layer_count) const;

  friend bool operator==(const LayerActivations&, const LayerActivations&) = default;

 private:
  struct Range {
    Activations choice = Activations::keep;
    std::int32_t first = 0;
    std::int32_t last = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  static Result<Range> parse_range(std::string_view word, std::string_view layers);
  Status add(const Range& range);

  std::vector<Range> ranges_;
  Activations others_ = Activations::keep;
};

}  // namespace sluice::model
