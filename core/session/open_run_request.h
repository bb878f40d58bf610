#pragma once
// The request that a run is opened by (open_run.h).
//
// Thread contract: plain data.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/parameter_span.h"
#include "core/plan/run_plan.h"
#include "core/session/recipe_history.h"
#include "core/session/run_memory.h"
#include "core/session/wrap_engine.h"

namespace sluice::csd {
class DeviceFactory;
}
namespace sluice::io {
class PinnedMemory;
}
namespace sluice::record {
class Recorder;
}
namespace sluice::runtime {
struct Operation;
class Runtime;
}  // namespace sluice::runtime

namespace sluice::session {

struct OpenRunRequest {
  plan::RunPlan plan;
  RunMemory memory;
  // Addresses of the plan's base, which is there by layer (BaseCut); they outlive the run.
  ParameterSpan base = {};
  // The recipe that the state to go on with was made with (RunState).
  std::optional<RecipeHistory> history = {};
  std::shared_ptr<io::PinnedMemory> pinned_memory;  // null: plain memory
  // Null: nothing is recorded.
  record::Recorder* recorder = nullptr;
  // The devices of method=csd; null: emulated ones.
  csd::DeviceFactory* devices = nullptr;
  // Until other ranks have made a step's commit durable; empty: there are none.
  std::function<runtime::Operation(runtime::Runtime& runtime, std::int32_t step)>
      committed_elsewhere = {};
  WrapEngine wrap_engine = {};
};

}  // namespace sluice::session
