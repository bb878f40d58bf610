#pragma once
// Which part of a model's optimizer state a state folder holds, where each of many ranks has one of
// its own (docs/sharding.md). The model's parameters are in `parameter_parts` parts, each a stretch
// of every layer, and such a part's flat elements are in `state_parts` parts.
//
// Thread contract: plain data.

#include <cstdint>
#include <string>

namespace sluice::state {

struct Share {
  std::int32_t parameter_part = 0;
  std::int32_t parameter_parts = 1;
  std::int32_t state_part = 0;
  std::int32_t state_parts = 1;

  bool is_whole() const { return parameter_parts == 1 && state_parts == 1; }
  friend bool operator==(const Share&, const Share&) = default;
};

// "all of it", "part 2 of 4 of the parameters, part 1 of 2 of its state"; parts from 1.
std::string share_text(const Share& share);

}  // namespace sluice::state
