#pragma once
// What a session's schedule knows of one step.
//
// Thread contract: the schedule's thread.

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "core/runtime/sync.h"
#include "core/session/run_observer.h"

namespace sluice::session {

// The gradients of the step to come, and who waits for parameters of the one before.
struct SessionStep {
  // A step that is over, before anybody was told of it.
  struct Untold {
    StepReport report;
    TimeNs begin_ns = 0;
  };

  SessionStep(runtime::Runtime& runtime, std::size_t layer_count)
      : is_sent(layer_count, false), gradients(runtime), waits(runtime) {}

  std::vector<bool> is_sent;  // by layer
  bool has_begun = false;
  bool has_replaced = false;  // one of the gradients
  TimeNs before_end_ns = 0;   // when the step before it ended, and what is no step's behind that
  TimeNs begin_ns = 0;        // its first gradient
  runtime::TaskGroup gradients;
  runtime::TaskGroup waits;
  // Parameters on the drives come in the order of layers: the one that comes next; none: nothing
  // is on its way.
  std::optional<LayerId> next_layer;
  std::optional<Untold> before;
};

}  // namespace sluice::session
