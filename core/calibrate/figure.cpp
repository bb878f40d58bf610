#include "core/calibrate/figure.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::calibrate {

Figure figure_of(std::vector<double> values) {
  CHECK_GT(values.size(), std::size_t{0});
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back(), static_cast<int>(values.size())};
}

}  // namespace sluice::calibrate
