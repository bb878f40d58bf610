#pragma once
// How the tokens of a batch lie: windows one after the other.
//
// Thread contract: plain data.

#include <cstdint>

namespace sluice::model {

struct WindowShape {
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t tokens() const { return batch * sequence; }
};

}  // namespace sluice::model
