#pragma once
// A part of a memory plan: what takes memory, in words, and how much. Each part of a run
// contributes its own items; the run adds them up (core/plan/memory_plan.h).
//
// Thread contract: plain data.

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

struct MemoryItem {
  std::string what;
  std::int64_t size_bytes = 0;  // an upper bound of resident memory; 0: left out of the plan
};
using MemoryItems = std::vector<MemoryItem>;

}  // namespace sluice
