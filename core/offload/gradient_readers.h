#pragma once
// The subgroups whose gradients are being read for an update before the decision: until the last of
// them has what it needs, no gradient may be written again (Offload::halt_ahead).
//
// Thread contract: the schedule's thread.

#include <cstdint>

#include "base/id_vector.h"
#include "base/ids.h"
#include "core/runtime/sync.h"

namespace sluice::offload {

class GradientReaders {
 public:
  GradientReaders(runtime::Runtime& runtime, std::int32_t subgroup_count)
      : reads_(subgroup_count), none_(runtime) {}

  // For a step that is to come.
  void reset();
  // The subgroup's gradient is about to be read, until its kernel has ended.
  void begin(SubgroupId subgroup);
  // Also of one that does not read.
  void end(SubgroupId subgroup);
  runtime::Event::Awaiter none();

 private:
  IdVector<SubgroupId, char> reads_;
  std::int32_t count_ = 0;
  runtime::Event none_;  // reads
};

}  // namespace sluice::offload
