#pragma once
// What a model takes of memory while it computes, besides the flat parameters.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::model {

// Upper bounds, in bytes of resident memory.
struct ModelMemory {
  std::int64_t library_bytes = 0;
  std::int64_t activation_bytes = 0;
  std::int64_t temporary_bytes = 0;
  std::int64_t tied_gradient_bytes = 0;
};

}  // namespace sluice::model
