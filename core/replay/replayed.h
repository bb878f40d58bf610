#pragma once
// The graph run again in simulated time, by the links and compute units of the runtime's own cost
// model (core/runtime/cost_model.h).
//
// Thread contract: a free function. Deterministic: the same graph gives the same times.

#include <string>
#include <vector>

#include "core/replay/operation_graph.h"

namespace sluice::replay {

struct Busy {
  std::string name;  // of a link with its direction, an engine, or a thread
  double share = 0;  // of the time, in which it worked at its rate
};

struct Replayed {
  TimeNs dur_ns = 0;       // of the stretch
  std::vector<Busy> busy;  // the busiest first; those that did nothing are not there
};

Replayed replay(const OperationGraph& graph);

}  // namespace sluice::replay
