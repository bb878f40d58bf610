#pragma once
// How much of what could run at the same time did, and how evenly devices were used.
//
// Thread contract: free functions.

#include <string>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// Transfers beside forward, backward and kernels.
struct Overlap {
  TimeNs compute_ns = 0;   // something was computed
  TimeNs transfer_ns = 0;  // something moved
  TimeNs both_ns = 0;
  // The shorter of the two could have gone on beside the other all the time; 1 if there is nothing
  // to overlap.
  double achieved() const {
    const TimeNs possible_ns = compute_ns < transfer_ns ? compute_ns : transfer_ns;
    return possible_ns == 0 ? 1 : static_cast<double>(both_ns) / static_cast<double>(possible_ns);
  }
};
Overlap overlap_of(const StepData& step);

struct DeviceUse {
  std::int32_t device = 0;
  std::string name;
  TimeNs read_ns = 0;  // something was read from its drive
  TimeNs write_ns = 0;
  TimeNs update_ns = 0;
  TimeNs busy_ns = 0;  // any of them
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
};
// By device; those that did nothing are there as well.
std::vector<DeviceUse> device_use(const StepData& step);
// The busiest device's time beside the mean; 1: even. 1 without devices or work.
double imbalance_of(const std::vector<DeviceUse>& devices);
// From here on it is worth saying.
inline constexpr double kUneven = 1.1;

}  // namespace sluice::analyze
