#pragma once
// The peak of each memory that a run uses, beside its cap: the host's, that of an accelerator and
// that beside each device's engine. All are plans, upper bounds that a run keeps to
// (core/plan/memory_plan.h); which memory holds the activations follows from the machine.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/memory_plan.h"

namespace sluice::tune {

struct MemoryUse {
  std::string name;     // "host", "accelerator", "device"
  std::string setting;  // that caps it: "host_memory", ...; "limit": no setting can raise it
  std::int64_t peak_bytes = 0;
  std::int64_t cap_bytes = 0;  // 0: nobody has said one
  std::string limit = {};      // of this process, where one counted; empty: setting or platform

  bool fits() const { return cap_bytes == 0 || peak_bytes <= cap_bytes; }
};

// The facts of a machine and its model that a RunPlan does not know.
struct MemoryModel {
  // The memory that computing takes (core/plan/memory_plan.h), on an accelerator too where it names
  // one, be that modelled or real.
  std::function<plan::ModelMemory(const plan::RunPlan&)> computing;
  // Devices have their memory for themselves, as on the modelled machine; else it is the host's.
  bool devices_have_own = true;
  // The host's, where neither settings nor platform say one; 0 bytes: any.
  plan::MemoryCap host = {};
  bool is_here = false;  // `host` is what a run here may have, whatever the platform says
};

// " (cgroup memory.max of /sys/fs/cgroup/small)", or nothing.
std::string limit_in_brackets(const MemoryUse& use);

struct TierMemory {
  std::vector<MemoryUse> uses;     // those that there are
  std::size_t of_activations = 0;  // which of them holds what layers keep

  bool fits() const;
  const MemoryUse& activations() const { return uses[of_activations]; }
};

// state_cache=auto becomes what the plan leaves, as a number in run.config.
TierMemory tier_memory(plan::RunPlan& run, const MemoryModel& model);

}  // namespace sluice::tune
