#pragma once
// Where a run waited for activations: the spans of tracks of kind "waiting" (docs/recording.md), by
// layer, and what was busy meanwhile.
//
// Thread contract: plain data and free functions.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// Sums over the whole run; the layers in order, those that waited alone.
struct LayerWaits {
  std::int64_t layer = -1;
  std::int64_t out_count = 0;
  std::int64_t back_count = 0;
  TimeNs out_ns = 0;   // for activations to leave
  TimeNs back_ns = 0;  // for activations to come back
};
Result<std::vector<LayerWaits>> activation_waits(rundb::Reader& reader);

// Time of the waits in which something moved activations, or a kernel of the host ran.
class WaitUse {
 public:
  void add(const StepData& step);
  // "drive writes": what was busy for the longest time while the cause's waits lasted; "" where
  // nothing was.
  std::string busiest(Cause cause) const;

 private:
  enum Kind : std::uint8_t { drives, accelerator_links, host_kernels, kKindCount };
  using BusyNs = std::array<TimeNs, kKindCount>;
  static Kind kind_of(const Span& span);

  BusyNs out_{};
  BusyNs back_{};
};

}  // namespace sluice::analyze
