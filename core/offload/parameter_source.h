#pragma once
// Where the layers' parameters come from, as whoever computes with them sees it: host memory
// or the drives (parameter_carrier.h), or the ranks that own parts of them
// (core/train/shard_traffic.h).
//
//   begin_pass(forward)     layers upwards
//   bring(layer)            it is in host memory, whole and of the last update
//   done(layer)             computed with, or copied to an accelerator: its memory may go
//   finish_pass()           nothing is under way; also after a failure
//   begin_pass(backward)    layers downwards
//
// Thread contract: the schedule's thread.

#include <cstdint>

#include "base/ids.h"
#include "base/status.h"
#include "base/units.h"
#include "core/runtime/task.h"

namespace sluice::offload {

// Which way one pass over the layers goes.
enum class Pass : std::uint8_t { forward, backward };

class ParameterSource {
 public:
  virtual ~ParameterSource() = default;

  virtual void begin_pass(Pass pass) = 0;
  virtual runtime::Task<Status> bring(LayerId layer) = 0;
  virtual void done(LayerId layer) = 0;
  virtual runtime::Task<Status> finish_pass() = 0;

  // Whether a layer is to be brought while the one before it is computed with.
  virtual bool comes_ahead() const = 0;
  // When all that the last update has changed was there.
  virtual TimeNs completed_ns() const = 0;
};

}  // namespace sluice::offload
