#pragma once
// A run's settings made concrete: the model's shape, the machine, how the state is cut and
// offloaded and what each layer costs. All that the schedule needs except memory, files and a
// clock, so a run that trains and one that is only simulated have it in common.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/activation/activation_plan.h"
#include "core/model/model_shape.h"
#include "core/offload/offload_options.h"
#include "core/plan/layer_cost.h"
#include "core/platform/platform.h"
#include "core/settings/run_config.h"
#include "core/shard/share.h"
#include "storage/state/state_layout.h"

namespace sluice::csd {
enum class Payload : std::uint8_t;
}
namespace sluice::offload {
struct AssemblyPlan;
struct BaseCut;
}  // namespace sluice::offload

namespace sluice::plan {

struct RunPlan {
  settings::RunConfig config;
  model::ModelShape shape;
  model::FlatLayout layout;
  platform::Platform platform;  // with as many devices as the run uses
  shard::RankShare share;       // what of the model is this rank's
  state::Geometry geometry;     // of the state that is
  state::DeviceMap device_map;  // where the next version of each subgroup goes
  offload::OffloadOptions options;
  std::shared_ptr<const offload::BaseCut> base;  // of adapters, where it lies on the drives
  std::vector<LayerCost> layer_costs;
  activation::ActivationPlan activations;  // what of them leaves memory in a step

  // Somebody else computes the gradients, in fp32.
  bool is_of_tensors() const { return shape.layers == 0; }
  std::int64_t device_budget_bytes(const platform::Device& device) const;
};

// The plan of the run's offload (core/offload/assembly_plan.h).
offload::AssemblyPlan assembly_plan(const RunPlan& plan, csd::Payload payload);

// Reads the model and the platform file. Errors: theirs, and what the settings ask of them that
// they do not have (ErrorCode::config).
Result<RunPlan> plan_run(const settings::RunConfig& config);
// The same with a model and a machine that are known already, whatever files `config` names.
Result<RunPlan> plan_run(const settings::RunConfig& config, const model::ModelShape& shape,
                         const platform::Platform& platform);

// The same of tensors whose gradients somebody else computes (core/session/session.h): `layout`
// without a model, all of it this process's. `config` names no model.
inline constexpr const char* kNoModelFile = "none";  // its `model`, and its `text`
Result<RunPlan> plan_tensors(const settings::RunConfig& config, model::FlatLayout layout,
                             const platform::Platform& platform);

// The same with other knobs (settings::with_knobs); platform, model and geometry stay as they are.
Status set_knobs(RunPlan& plan, const settings::RunConfig& config);

// ErrorCode::unsupported if something is to leave memory and the model gives no blocks.
Status check_activations(const RunPlan& plan, bool model_gives_blocks);

// The machine that a run's settings ask for: with the accelerator that `device` needs, if the
// platform has none.
platform::Platform with_needed_accelerator(const platform::Platform& platform,
                                           const settings::RunConfig& config);

// The machine that a real clock finds: what computes is this machine's processor, in host memory,
// or the one device of the setting `device`.
Result<platform::Platform> with_real_accelerator(const platform::Platform& platform,
                                                 const settings::RunConfig& config);

// ErrorCode::memory if a device's buffer sets and the state that it keeps exceed its memory, with
// the smallest memory, or the largest state_cache, that would do.
Status check_device_memory(const RunPlan& plan);

}  // namespace sluice::plan
