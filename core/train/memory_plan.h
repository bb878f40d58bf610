#pragma once
// The memory of a run, planned before anything is taken (D9): each item with what it is for, and
// the cap they must fit under.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/train/model_factory.h"
#include "core/train/run_plan.h"

namespace sluice::train {

struct MemoryItem {
  std::string what;
  std::int64_t size_bytes = 0;
};

struct MemoryPlan {
  std::vector<MemoryItem> items;
  std::int64_t total_bytes = 0;
  std::int64_t cap_bytes = 0;  // host_memory, or what the machine has available
};

MemoryPlan plan_memory(const RunPlan& run, const ModelMemory& model);

// ErrorCode::memory if the plan exceeds its cap, with the smallest cap that would do.
Status check_plan(const MemoryPlan& plan);

// A table, a line an item.
std::string describe(const MemoryPlan& plan);

std::int64_t available_memory_bytes();      // /proc/meminfo MemAvailable
std::int64_t peak_resident_memory_bytes();  // /proc/self/status VmHWM

}  // namespace sluice::train
