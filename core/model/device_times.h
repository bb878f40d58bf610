#pragma once
// How fast a device with memory of its own is, as it was measured: what core/model/torch times, and
// core/calibrate makes a platform's [compute] of.
//
// Thread contract: plain data.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::model {

// Copies of one size between host memory and the device, one after the other: seconds of each.
struct CopyTimes {
  std::int64_t size_bytes = 0;
  bool is_pinned = true;  // host memory that the device copies from by itself
  std::vector<double> in_seconds = {};
  std::vector<double> out_seconds = {};
};

// Products of square 16-bit matrices: seconds of each.
struct ProductTimes {
  std::int64_t side = 0;
  double flop() const {
    return 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
  }
  std::vector<double> seconds = {};
};

struct DeviceTimes {
  std::string description;  // "SOFTWARE ACCELERATOR soft:0"
  std::int64_t memory_bytes = 0;
  bool computes_on_processor = false;  // of the host
  std::vector<CopyTimes> copies;       // rising sizes, pinned before pageable
  // The largest pinned copies, both ways at once: seconds of both together.
  std::vector<double> both_ways_seconds;
  std::vector<double> small_seconds;   // a pinned copy of 4 KiB, from its call to its end
  std::vector<ProductTimes> products;  // rising sides
};

// The timing that is asked for.
struct DeviceTiming {
  std::string device;    // a name of core/model/device_name.h with memory of its own
  int thread_count = 0;  // of a device that computes on the processor; 0: all
  int repeat_count = 7;
};

}  // namespace sluice::model
