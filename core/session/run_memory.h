#pragma once
// The memory of a run that is to be opened, and what fills the rest of it.
//
// Thread contract: plain data and a free function.

#include <functional>
#include <optional>

#include "core/plan/memory_plan.h"

namespace sluice::session {

struct RunMemory {
  // The memory that computing takes by another plan; from any thread.
  std::function<plan::ModelMemory(const plan::RunPlan&)> model_of;
  plan::ModelMemory model = {};  // by the plan in force
  plan::MemoryPlan host = {};
  std::optional<plan::MemoryPlan> accelerator = {};  // where one computes
};

// Plans it, and gives state_cache=auto of `run` what is left. Errors: what does not fit, with the
// smallest memory that would do (ErrorCode::memory); what is asked of an accelerator where none
// computes (ErrorCode::config).
Result<RunMemory> plan_run_memory(plan::RunPlan& run,
                                  std::function<plan::ModelMemory(const plan::RunPlan&)> model_of);

}  // namespace sluice::session
