#pragma once
// A session's plan, before anything is taken: bytes by place, and how long an update is to take.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/session/session.h"

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::session {

struct RunMemory;
class TensorTable;

struct SessionPlan {
  struct Row {
    std::string place;  // "host memory", "drive 0"
    std::string what;
    std::int64_t size_bytes = 0;
  };
  std::vector<Row> rows = {};
  std::int64_t host_memory_bytes = 0;  // in all
  std::int64_t host_memory_cap_bytes = 0;
  // From the first gradient to the last parameter by the platform's rates, where gradients come as
  // fast as they are taken: a step without its forward and backward.
  double update_seconds = 0;
};

// Opens nothing, and takes no memory of the session's. Errors: those of Session::open() before it
// touches a file.
Result<SessionPlan> plan_session(const Session::Request& request);

// The parts of it that opening has in common. Fills `tensors`.
Result<plan::RunPlan> run_plan_of(const Session::Request& request, TensorTable& tensors);
Result<RunMemory> memory_of(plan::RunPlan& plan, const TensorTable& tensors);

}  // namespace sluice::session
