#pragma once
// The memory of a run, planned before anything is taken (D9): each item with what it is for, and
// the cap they must fit under.
//
// An accelerator's memory has a plan of its own, and a cap of its own (accelerator_memory).
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/memory_item.h"
#include "base/status.h"

namespace sluice {
struct ProcessFacts;
}
namespace sluice::model {
struct DeviceSelection;
struct FlatLayout;
struct ModelFactory;
}  // namespace sluice::model
namespace sluice::settings {
struct RunConfig;
}

namespace sluice::plan {

struct RunPlan;

// The share of a plan that state_cache may take, in whole subgroups: of the host's memory, or of
// that of each emulated device, which is the host's.
struct StateCacheShare {
  std::int64_t size_bytes = 0;      // in all
  std::int64_t subgroup_bytes = 0;  // of one
  std::int32_t memory_count = 1;    // host, or emulated devices

  // The largest state_cache that takes no more than `left_bytes` in all.
  std::int64_t largest_bytes(std::int64_t left_bytes) const;
};

// The limit on the host's part. host_memory may ask for more than other programs leave free now,
// since they may end, and for no more than this process may have at all.
struct MemoryCap {
  enum class Source { host_memory, machine, set_limit };  // set_limit: cgroups and ulimit

  std::int64_t size_bytes = 0;
  Source source = Source::host_memory;
  std::string what = "host_memory";  // which limit counted (base/process_limits.h)
};
// `facts`: of this process, which has taken part of its memory already.
MemoryCap memory_cap(const settings::RunConfig& config, const ProcessFacts& facts);
MemoryCap memory_cap(const settings::RunConfig& config);

struct MemoryPlan {
  std::string of = {};  // an accelerator's description; empty: the process's
  MemoryItems items;
  std::int64_t total_bytes = 0;
  std::int64_t cap_bytes = 0;
  MemoryCap::Source cap_source = MemoryCap::Source::host_memory;
  std::string cap_what = {};  // which limit counted; empty: it goes without saying
  StateCacheShare cache;

  void set_cap(const MemoryCap& cap);
};

// The memory that a model takes while it computes, as its factory says.
struct ModelMemory {
  MemoryItems host;
  // Where it computes on an accelerator.
  std::string accelerator = {};  // its description; empty: none
  MemoryItems on_accelerator = {};
  std::int64_t accelerator_cap_bytes = 0;
  bool is_accelerator_in_host_memory = false;
  // The memory that gradient work takes there.
  std::function<MemoryItems(const model::FlatLayout&, const model::DeviceSelection&)>
      gradient_work = {};
};
ModelMemory model_memory(const model::ModelFactory& factory, const RunPlan& run);

// Parameters in host memory: all of them, a window of them, or this rank's and a window.
MemoryItems parameter_items(const RunPlan& run);

// With state_cache=auto nothing is kept yet.
MemoryPlan plan_memory(const RunPlan& run, const ModelMemory& model, const MemoryCap& cap);
// The memory of the accelerator, beside the plan of the process. There is one.
MemoryPlan plan_accelerator_memory(const RunPlan& run, const ModelMemory& model);

// state_cache=auto: as much as is left under the plan's cap and in the devices' memory, in whole
// subgroups; into run.options and the plan. Where host_memory is not what counts, a tenth of the
// cap stays free. Does nothing with another state_cache.
void fill_state_cache(RunPlan& run, MemoryPlan& plan);
// The same for devices that have their memory for themselves, as simulated ones do. `left_bytes`:
// of host memory.
void fill_state_cache(RunPlan& run, std::int64_t left_bytes);

// ErrorCode::memory if the plan exceeds its cap, with the smallest cap, or the largest state_cache,
// that would do, and the limit that counted.
Status check_plan(const MemoryPlan& plan);

// A table, a line an item.
std::string describe(const MemoryPlan& plan);

// The host's memory that the offload takes, state that stays included.
std::int64_t offload_host_bytes(const RunPlan& run);

std::int64_t peak_resident_memory_bytes();  // /proc/self/status VmHWM

}  // namespace sluice::plan
