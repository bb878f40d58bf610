#include "core/offload/gradient_readers.h"

#include <algorithm>
#include <utility>

namespace sluice::offload {

void GradientReaders::reset() {
  std::ranges::fill(reads_, 0);
  count_ = 0;
  none_.set();
}

void GradientReaders::begin(SubgroupId subgroup) {
  reads_[subgroup] = 1;
  if (count_ == 0) none_.reset();
  count_ += 1;
}

void GradientReaders::end(SubgroupId subgroup) {
  if (std::exchange(reads_[subgroup], 0) == 0) return;
  count_ -= 1;
  if (count_ == 0) none_.set();
}

runtime::Event::Awaiter GradientReaders::none() {
  runtime::Waiting waiting;
  waiting.what = "updates ahead of the decision to have read their gradients";
  return none_.wait(waiting);
}

}  // namespace sluice::offload
