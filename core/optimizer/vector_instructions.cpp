#include "core/optimizer/vector_instructions.h"

#include <bit>
#include <cstdint>

#include "hwy/targets.h"

namespace sluice::optimizer {

std::vector<std::string> vector_instructions() {
  std::vector<std::string> names;
  // A bit for each kind, the better one the lower.
  for (auto left = static_cast<std::uint64_t>(hwy::SupportedTargets()); left != 0;
       left &= left - 1) {
    names.push_back(
        hwy::TargetName(static_cast<std::int64_t>(std::uint64_t{1} << std::countr_zero(left))));
  }
  return names;
}

}  // namespace sluice::optimizer
