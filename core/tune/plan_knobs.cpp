#include "core/tune/plan_knobs.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/model/kept_bytes.h"
#include "core/plan/run_plan.h"
#include "core/settings/clipping.h"

namespace sluice::tune {
namespace {

using Values = std::vector<std::string>;
using plan::RunPlan;

Values gradient_tiers(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"storage", "memory"};
}
Values state_caches(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"0", "auto"};
}
Values buffer_counts(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"1", "2", "3", "4", "6", "8", "12"};
}
Values pipelines(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"nbuffer", "handover", "serial"};
}
Values wires(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"native", "fp32"};
}

// One that clips by subgroup stays, and is never chosen: it changes what the model learns.
Values overlaps(const RunPlan& run, std::int64_t /*commit_every_max*/) {
  if (settings::is_clipped_by_subgroup(run.config)) return {};
  return {"exact", "off"};
}
// Compact state changes what the model learns, too. A commit writes as much of exact state as of
// fp32.
Values state_formats(const RunPlan& run, std::int64_t commit_every_max) {
  const bool may_save = std::max(run.config.offload.commit_every, commit_every_max) > 1;
  if (!may_save || !settings::may_be_exact(run.config)) return {};
  return {"fp32", "exact"};
}
Values parameter_tiers(const RunPlan& /*run*/, std::int64_t /*commit_every_max*/) {
  return {"memory", "storage"};
}

// It says what a crash costs, so it stays unless somebody says how much that may be.
Values commit_periods(const RunPlan& /*run*/, std::int64_t commit_every_max) {
  if (commit_every_max <= 1) return {};
  return {"1", fmt::format("{}", commit_every_max)};
}

// Some times the widest layer that may leave; 0 is twice that.
Values activation_buffers(const RunPlan& run, std::int64_t /*commit_every_max*/) {
  std::int64_t widest_bytes = 0;
  for (const LayerId layer : all_ids<LayerId>(run.layout.layer_count())) {
    const auto blocks =
        model::kept_block_bytes(run.shape, layer, run.config.batch.batch, run.config.batch.sequence,
                                model::Activations::offload, run.config.arithmetic.precision);
    widest_bytes =
        std::max(widest_bytes, std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0}));
  }
  Values values = {"0"};
  for (const std::int64_t layers : {1, 4, 8}) {
    values.push_back(fmt::format("{}", layers * widest_bytes));
  }
  return values;
}

constexpr std::array kKnobs = {
    PlanKnob{"gradient_tier", "storage", true, gradient_tiers,
             "where gradients wait for the update"},
    PlanKnob{"state_cache", "0", true, state_caches, "optimizer state that stays in memory"},
    PlanKnob{"parameter_tier", "storage", true, parameter_tiers, "where parameters lie"},
    PlanKnob{"activation_buffer", "4096", false, activation_buffers,
             "memory for activations on their way"},
    PlanKnob{"buffers", "1", false, buffer_counts, "subgroups under way at once"},
    PlanKnob{"pipeline", "serial", false, pipelines, "how read, update and write overlap"},
    PlanKnob{"overlap", "off", false, overlaps, "whether the update runs beside backward"},
    PlanKnob{"state_format", "exact", false, state_formats, "how optimizer state is stored"},
    PlanKnob{"wire", "fp32", false, wires, "bits of gradients and parameters on the link"},
    PlanKnob{"commit_every", "1", false, commit_periods, "steps between commits"},
};

}  // namespace

std::span<const PlanKnob> plan_knobs() { return kKnobs; }

}  // namespace sluice::tune
