#include "base/clock.h"
#include "core/runtime/clocks.h"

namespace sluice::runtime {

TimeNs RealClock::now_ns() { return monotonic_now_ns(); }

void RealClock::wait(OperationQueue& completed, TimeNs patience_ns) {
  executor_->collect(completed);
  if (!completed.empty()) return;
  executor_->sleep(patience_ns);
  executor_->collect(completed);
}

}  // namespace sluice::runtime
