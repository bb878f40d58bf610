#include "core/plan/placement.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "core/offload/parameter_store.h"
#include "core/offload/state_cache.h"
#include "core/plan/run_plan.h"

namespace sluice::plan {
namespace {

std::string parameters_text(const RunPlan& plan) {
  const std::string all =
      format_bytes(plan.share.parameters.parameter_count * bytes_of(plan.options.parameter_kind));
  if (!plan.options.streams_parameters()) return "host memory, " + all;
  return fmt::format("drives, {}, at most {} of them in host memory", all,
                     format_bytes(offload::parameter_memory_bytes(plan.layout, plan.options)));
}

// Nothing without adapters.
std::string base_text(const RunPlan& plan) {
  if (!plan.shape.has_adapters()) return "";
  const std::string all = format_bytes(plan.shape.base_layout().parameter_count *
                                       bytes_of(plan.options.parameter_kind));
  if (!plan.base) return "; base weights: host memory, " + all;
  return fmt::format(
      "; base weights: drives, {}, at most {} of them in host memory", all,
      format_bytes(offload::parameter_memory_bytes(plan.base->layout, plan.options)));
}

std::string gradients_text(const RunPlan& plan) {
  const bool is_in_memory = plan.options.gradient_tier == offload::GradientTier::memory;
  const std::string kept = plan.options.is_sparse()
                               ? fmt::format(" ({:g} of the elements)", plan.options.density)
                               : std::string();
  return (is_in_memory ? "host memory" : "drives") + kept;
}

std::string state_text(const RunPlan& plan) {
  const std::int64_t all_bytes = plan.geometry.state_bytes();
  std::string text = "drives, " + format_bytes(all_bytes);
  const std::int64_t kept_bytes =
      offload::count_of(offload::choose_kept(plan.options, plan.geometry, plan.device_map)) *
      offload::kept_subgroup_bytes(plan.options, plan.geometry);
  if (kept_bytes == 0) return text;
  const bool is_host = plan.options.method == offload::Method::host;
  return text + fmt::format(", {} of it also in {} memory",
                            format_bytes(std::min(kept_bytes, all_bytes)),
                            is_host ? "host" : "the devices'");
}

std::string activations_text(const RunPlan& plan) {
  const activation::ActivationPlan& activations = plan.activations;
  if (!activations.offloads_anything() || activations.stays) return "where they are computed";
  const std::int64_t host_bytes = activations.host_bytes();
  const std::int64_t drive_bytes = activations.step_bytes() - host_bytes;
  std::string text = fmt::format("drives, {} a step", format_bytes(drive_bytes));
  if (host_bytes > 0) text += fmt::format(", host memory, {} a step", format_bytes(host_bytes));
  return text +
         fmt::format(", at most {} of them on their way", format_bytes(activations.buffer_bytes));
}

}  // namespace

std::string placement_text(const RunPlan& plan) {
  return fmt::format("parameters: {}{}; gradients: {}; optimizer state: {}; activations: {}",
                     parameters_text(plan), base_text(plan), gradients_text(plan), state_text(plan),
                     activations_text(plan));
}

}  // namespace sluice::plan
