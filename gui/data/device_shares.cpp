#include "gui/data/device_shares.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sluice::gui {

std::vector<std::int64_t> subgroups_under(std::int64_t subgroup_count,
                                          const std::vector<double>& shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  std::vector<std::int64_t> counts(shares.size(), 0);
  if (!(sum > 0)) return counts;
  std::vector<double> remainders(shares.size());
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::int64_t left = subgroup_count;
  for (std::size_t d = 0; d < shares.size(); ++d) {
    const double quota = static_cast<double>(subgroup_count) * (shares[d] / sum);
    counts[d] = std::min(left, static_cast<std::int64_t>(quota));
    remainders[d] = shares[d] > 0 ? quota - static_cast<double>(counts[d]) : -1;
    left -= counts[d];
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t d) { return remainders[d]; });
  for (std::size_t i = 0; left > 0 && i < order.size(); ++i, --left) counts[order[i]] += 1;
  return counts;
}

std::vector<double> shares_after_move(const std::vector<std::int64_t>& counts, std::size_t from,
                                      std::size_t to, std::int64_t amount) {
  std::vector<std::int64_t> moved = counts;
  const std::int64_t count = std::clamp<std::int64_t>(amount, 0, moved[from]);
  moved[from] -= count;
  moved[to] += count;
  return {moved.begin(), moved.end()};
}

}  // namespace sluice::gui
