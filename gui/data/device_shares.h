#pragma once
// Subgroups of each device under shares, and what moving some from one to another makes of them.
//
// Thread contract: free functions.

#include <cstdint>
#include <vector>

namespace sluice::gui {

// As a run divides them (storage/state/state_layout.h): by the largest remainders, the first device
// first; a share of 0 gets none. Shares are at least 0 and not all 0.
std::vector<std::int64_t> subgroups_under(std::int64_t subgroup_count,
                                          const std::vector<double>& shares);

// Shares that stand for `counts` after `amount` of them, or all that there are, went from one
// device to another.
std::vector<double> shares_after_move(const std::vector<std::int64_t>& counts, std::size_t from,
                                      std::size_t to, std::int64_t amount);

}  // namespace sluice::gui
