#include "core/tune/detail/transfer_tolls.h"

#include <algorithm>

namespace sluice::tune::detail {

TransferTolls::TransferTolls(const ChargedStep& charged, const RecordedSteps& recorded) {
  std::map<TimeNs, double> change_of_share;
  for (const OperationTimes& transfer : recorded.operations) {
    const auto toll = charged.tolls.find({transfer.stage, transfer.device});
    if (toll == charged.tolls.end() || transfer.end_ns <= transfer.start_ns) continue;
    const double share = toll->second * static_cast<double>(transfer.size_bytes) * 1e9 /
                         static_cast<double>(transfer.end_ns - transfer.start_ns);
    change_of_share[transfer.start_ns] += share;
    change_of_share[transfer.end_ns] -= share;
  }
  Change last{0, 0, 0};
  for (const auto& [at_ns, by] : change_of_share) {
    if (!changes_.empty())
      last.seconds += last.share * static_cast<double>(at_ns - last.at_ns) / 1e9;
    last.at_ns = at_ns;
    last.share += by;
    changes_.push_back(last);
  }
}

double TransferTolls::share(TimeNs start_ns, TimeNs end_ns) const {
  if (end_ns <= start_ns) return 0;
  const double taken = seconds_until(end_ns) - seconds_until(start_ns);
  return std::clamp(taken * 1e9 / static_cast<double>(end_ns - start_ns), 0.0, kMost);
}

double TransferTolls::seconds_until(TimeNs at_ns) const {
  const auto next = std::ranges::upper_bound(changes_, at_ns, {}, &Change::at_ns);
  if (next == changes_.begin()) return 0;
  const Change& last = *std::prev(next);
  return last.seconds + last.share * static_cast<double>(at_ns - last.at_ns) / 1e9;
}

}  // namespace sluice::tune::detail
