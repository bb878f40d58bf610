#pragma once
// Which events of one device a fault strikes. The same settings and the same order of events give
// the same faults.
//
// Thread contract: any thread.

#include <array>
#include <atomic>

#include "base/split_mix.h"
#include "soft/smartssd/settings.h"

namespace sluice::soft_smartssd {

class Faults {
 public:
  Faults(const Settings& settings, int device) : seed_(settings.seed), device_(device) {
    for (const FaultRule& rule : settings.faults) {
      if (rule.device < 0 || rule.device == device) rules_.push_back(rule);
    }
  }

  // Counts an event of this kind, and says whether it fails.
  bool strikes(FaultKind kind) {
    const std::int64_t event = ++counts_[static_cast<std::size_t>(kind)];
    for (const FaultRule& rule : rules_) {
      if (rule.kind != kind) continue;
      if (rule.event == event) return true;
      if (rule.event == 0 && unit_interval(number_for(kind, event)) <= rule.probability)
        return true;
    }
    return false;
  }

  // A number that follows from the seed, the device, the kind and the event.
  std::uint64_t number_for(FaultKind kind, std::int64_t event) const {
    const auto stream =
        static_cast<std::uint64_t>(device_ * kFaultKindCount) + static_cast<std::uint64_t>(kind);
    return split_mix(mix64(seed_ + 1) ^ stream, static_cast<std::uint64_t>(event));
  }

 private:
  std::uint64_t seed_;
  int device_;
  std::vector<FaultRule> rules_;
  std::array<std::atomic<std::int64_t>, kFaultKindCount> counts_{};
};

}  // namespace sluice::soft_smartssd
