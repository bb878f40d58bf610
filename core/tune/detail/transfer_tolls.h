#pragma once
// The host processor's time that the recorded transfers took, as the platform has it
// (processor_bandwidth): kernels that ran meanwhile had the rest, and their rates are no slower for
// it.
//
// Thread contract: immutable after construction.

#include <vector>

#include "core/tune/detail/fit_simulation.h"

namespace sluice::tune::detail {

class TransferTolls {
 public:
  // A transfer's bytes are spread evenly over its time.
  TransferTolls(const ChargedStep& charged, const RecordedSteps& recorded);

  // Mean share from `start_ns` to `end_ns`, at most kMost: what kernels did get was not nothing.
  double share(TimeNs start_ns, TimeNs end_ns) const;
  static constexpr double kMost = 0.9;

 private:
  double seconds_until(TimeNs at_ns) const;

  // Between two of them the share is the same.
  struct Change {
    TimeNs at_ns;
    double share;    // from here on
    double seconds;  // taken until here
  };
  std::vector<Change> changes_;
};

}  // namespace sluice::tune::detail
