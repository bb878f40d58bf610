#include "core/compress/selection.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice::compress {

std::int64_t kept_count(double density, std::int64_t element_count) {
  CHECK_GE(density, 0.0);
  CHECK_LE(density, 1.0);
  CHECK_GE(element_count, 0);
  CHECK_LE(element_count, kMaxElements);  // so that the product fits
  constexpr std::int64_t kBillion = 1'000'000'000;
  if (element_count == 0) return 0;
  const std::int64_t billionths = std::llround(density * 1e9);
  const std::int64_t kept = (billionths * element_count + kBillion - 1) / kBillion;
  return std::max<std::int64_t>(kept, 1);
}

}  // namespace sluice::compress
