#pragma once
// What is kept of a layer between its forward and its backward.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::model {

enum class Activations : std::uint8_t {
  keep,       // all of it
  recompute,  // the layer's input; the rest is computed again in backward
};

}  // namespace sluice::model
