#include "cli/shard_report.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/output.h"
#include "core/plan/run_extent.h"
#include "core/platform/cluster_mesh.h"
#include "core/shard/planner.h"
#include "core/simulate/memory_rank.h"
#include "core/simulate/simulated_plan.h"
#include "core/weights/model_folder.h"

namespace sluice::cli {
namespace {

using stages::Stage;

constexpr std::array<Stage, 4> kCollectiveStages = {Stage::all_gather, Stage::reduce_scatter,
                                                    Stage::all_reduce, Stage::broadcast};

constexpr std::array<std::string_view, 6> kOfAnyStep = {
    "batch", "sequence", "grad_accum_steps", "precision", "activations", "accelerator_memory"};

std::string_view key_of(std::string_view setting) { return setting.substr(0, setting.find('=')); }

// Settings of a run that a sharded step with its state in memory does not have are refused.
Status check_overrides(const std::vector<std::string>& overrides, bool may_be_on_drives) {
  for (const std::string& setting : overrides) {
    const std::string_view key = key_of(setting);
    if (key == "mesh" || key.starts_with("shard_")) {
      return make_error(ErrorCode::config, "--set {}: --ranks, --shard and --without say it", key);
    }
    if (may_be_on_drives || is_setting_of_any_step(setting)) continue;
    return make_error(
        ErrorCode::config,
        "--set {}: a sharded step with its state in memory has {}; --state drives has "
        "all settings",
        key, fmt::join(kOfAnyStep, ", "));
  }
  return ok_status();
}

Result<simulate::StateTier> parse_state_tier(const std::string& text) {
  if (text == "memory" || text.empty()) return simulate::StateTier::memory;
  if (text == "drives") return simulate::StateTier::drives;
  return make_error(ErrorCode::config, "--state {}: there are memory and drives", text);
}

Result<shard::Overlaps> parse_overlaps(const std::vector<std::string>& without) {
  const std::vector<std::string> known(shard::kOverlapNames.begin(), shard::kOverlapNames.end());
  shard::Overlaps overlaps = shard::Overlaps::all();
  for (const std::string& name : without) {
    const std::optional<shard::Overlap> overlap = shard::overlap_named(name);
    if (!overlap) {
      return make_error(ErrorCode::config, "--without {}: there are {}{}", name,
                        fmt::join(known, ", "), did_you_mean(name, known));
    }
    overlaps = overlaps.without(*overlap);
  }
  return overlaps;
}

Result<platform::Cluster> cut_cluster(const platform::Cluster& cluster, const std::string& ranks) {
  ASSIGN_OR_RETURN(const platform::Scope mesh, platform::parse_scope(ranks));
  return platform::with_mesh(cluster, mesh);
}

Result<shard::Triple> choose_triple(const ShardedRuns& runs, const std::string& sharding,
                                    std::int64_t cap_bytes) {
  const simulate::ShardedRun& run = runs.run;
  const platform::Cluster& cluster = *run.platform.cluster;
  if (sharding != "auto") return shard::parse_triple(sharding, cluster.mesh);
  if (run.state_tier == simulate::StateTier::drives) {
    simulate::SimulatedPlanRequest request;
    request.run = run;
    request.activations = {run.activations};
    request.state_tiers = {run.state_tier};
    request.drives = &runs.drives;
    request.memory_cap_bytes = cap_bytes;
    request.compared_triples = 0;
    ASSIGN_OR_RETURN(const simulate::SimulatedPlan plan, simulate::plan_by_simulation(request));
    return plan.best.triple;
  }
  shard::PlanProblem problem;
  problem.cluster = &cluster;
  problem.step = simulate::step_shape(run);
  problem.activation_bytes = simulate::run_memory(run).activation_bytes;
  problem.memory_cap_bytes = cap_bytes;
  ASSIGN_OR_RETURN(const std::vector<shard::Candidate> candidates, shard::plan_by_formula(problem));
  return candidates.front().triple;
}

std::string memory_text(const shard::RankMemory& memory) {
  std::string text = fmt::format(
      "A rank keeps {}: parameters {}, gradients {}, state {}, activations {}, buffers {}\n",
      format_bytes(memory.total_bytes()), format_bytes(memory.parameter_bytes),
      format_bytes(memory.gradient_bytes), format_bytes(memory.state_bytes),
      format_bytes(memory.activation_bytes), format_bytes(memory.buffer_bytes));
  if (memory.drive_bytes == 0) return text;
  return text + fmt::format("On its drives are {} of state.\n", format_bytes(memory.drive_bytes));
}

bool is_on_drives(const ShardedRuns& runs) {
  return runs.run.state_tier == simulate::StateTier::drives;
}

Result<simulate::ShardedStep> step_of(const ShardedRuns& runs) {
  return simulate::step_of(&runs.drives, runs.run);
}

Result<shard::RankMemory> memory_of(const ShardedRuns& runs) {
  if (!is_on_drives(runs)) return simulate::run_memory(runs.run);
  ASSIGN_OR_RETURN(const simulate::DriveChoice choice, runs.drives.choice(runs.run));
  return choice.memory;
}

// How much longer a step is without each overlap that is on. A run that trains has not
// keep_gathered: a layer is computed anew within its backward.
Result<std::string> worth_text(const ShardedRuns& runs, double seconds) {
  const simulate::ShardedRun& run = runs.run;
  std::string text;
  for (std::size_t i = 0; i < shard::kOverlapCount; ++i) {
    const auto overlap = static_cast<shard::Overlap>(i);
    if (!run.overlaps.has(overlap)) continue;
    if (is_on_drives(runs) && overlap == shard::Overlap::keep_gathered) continue;
    simulate::ShardedRun without = run;
    without.overlaps = run.overlaps.without(overlap);
    ASSIGN_OR_RETURN(const simulate::ShardedStep step, simulate::step_of(&runs.drives, without));
    text += fmt::format("  {:<15} {:>9.3f} s\n", shard::kOverlapNames[i], step.seconds - seconds);
  }
  return text;
}

}  // namespace

bool is_setting_of_any_step(std::string_view setting) {
  return std::ranges::count(kOfAnyStep, key_of(setting)) > 0;
}

simulate::DriveRank drive_rank(settings::RunConfig config, const ShardArguments& arguments,
                               const simulate::ShardedRun& run) {
  const auto is_said = [&](std::string_view key) {
    return std::ranges::any_of(arguments.overrides,
                               [&](const std::string& setting) { return key_of(setting) == key; });
  };
  const auto& devices = run.platform.devices;
  if (!is_said("devices")) config.offload.devices = std::ssize(devices);
  const bool is_any_plain = std::ranges::any_of(
      devices, [](const platform::Device& device) { return device.internal_route.empty(); });
  if (!is_said("method") && is_any_plain) config.offload.method = settings::Method::host;
  return simulate::DriveRank(std::move(config));
}

Result<simulate::ShardedRun> unsharded_run(const settings::RunConfig& config,
                                           const ShardArguments& arguments) {
  simulate::ShardedRun run;
  ASSIGN_OR_RETURN(run.shape, weights::load_shape(config.files.model));
  run.shape.stacks.spans = {config.objective.span_share, config.objective.span_length};
  ASSIGN_OR_RETURN(run.platform, platform::load_platform(config.files.platform));
  if (!run.platform.cluster) {
    return make_error(ErrorCode::config, "{}: sharding needs [cluster], and it has none",
                      run.platform.source);
  }
  const bool may_be_on_drives = arguments.state != "memory" && !run.platform.devices.empty();
  RETURN_IF_ERROR(check_overrides(arguments.overrides, may_be_on_drives));
  if (!arguments.ranks.empty()) {
    const auto cut = cut_cluster(*run.platform.cluster, arguments.ranks);
    if (!cut.ok()) return cut.error().with_context("--ranks " + arguments.ranks);
    run.platform.cluster = *cut;
  }
  RETURN_IF_ERROR(plan::check_step_extent(config.batch, run.shape));
  run.batch = config.batch.batch;
  run.sequence = config.batch.sequence;
  run.micro_batches = config.batch.grad_accum_steps;
  run.precision = config.arithmetic.precision;
  run.activations = config.arithmetic.activations;
  ASSIGN_OR_RETURN(run.state_tier, parse_state_tier(arguments.state));
  ASSIGN_OR_RETURN(run.overlaps, parse_overlaps(arguments.without));
  simulate::ShardedRun checked = run;
  if (may_be_on_drives) checked.activations = model::Activations::keep;
  RETURN_IF_ERROR(simulate::check_sharded(checked));
  return run;
}

std::int64_t rank_memory_cap_bytes(const settings::RunConfig& config,
                                   const platform::Cluster& cluster) {
  const std::int64_t asked_bytes = config.resources.accelerator_memory_bytes;
  return asked_bytes > 0 ? asked_bytes : cluster.memory_bytes;
}

Result<ShardedRuns> sharded_run(const settings::RunConfig& config,
                                const ShardArguments& arguments) {
  ASSIGN_OR_RETURN(const simulate::ShardedRun run, unsharded_run(config, arguments));
  ShardedRuns runs{run, drive_rank(config, arguments, run)};
  ASSIGN_OR_RETURN(runs.run.triple,
                   choose_triple(runs, arguments.sharding,
                                 rank_memory_cap_bytes(config, *run.platform.cluster)));
  return runs;
}

double tokens_a_second(const simulate::ShardedRun& run, const simulate::ShardedStep& step) {
  return static_cast<double>(run.batch * run.sequence * run.micro_batches) / step.seconds;
}

std::string collectives_text(const simulate::ShardedStep& step) {
  std::string text;
  for (const Stage stage : kCollectiveStages) {
    const simulate::StageUse& use = step.of(stage);
    if (use.count == 0) continue;
    text += fmt::format("  {:<15} {:>6} times {:>10} {:>9.3f} s\n", stages::stage_name(stage),
                        use.count, format_bytes(use.size_bytes), use.seconds);
  }
  return text.empty() ? "  none\n" : text;
}

void put_collectives(const simulate::ShardedStep& step, nlohmann::ordered_json& report) {
  for (const Stage stage : kCollectiveStages) {
    const simulate::StageUse& use = step.of(stage);
    report["collectives"][std::string(stages::stage_name(stage))] = {
        {"count", use.count}, {"bytes", use.size_bytes}, {"seconds", use.seconds}};
  }
}

nlohmann::ordered_json rank_memory_json(const shard::RankMemory& memory) {
  return {{"parameters", memory.parameter_bytes}, {"gradients", memory.gradient_bytes},
          {"state", memory.state_bytes},          {"activations", memory.activation_bytes},
          {"buffers", memory.buffer_bytes},       {"state_on_drives", memory.drive_bytes}};
}

Result<std::string> shard_report_text(const ShardedRuns& runs) {
  const simulate::ShardedRun& run = runs.run;
  ASSIGN_OR_RETURN(const simulate::ShardedStep step, step_of(runs));
  ASSIGN_OR_RETURN(const shard::RankMemory memory, memory_of(runs));
  ASSIGN_OR_RETURN(const std::string worth, worth_text(runs, step.seconds));
  std::string text = fmt::format(
      "SIMULATED: {} on {}, {} ranks; parameters, gradients and state over {}\n\n"
      "A step takes {:.3f} s, {:.0f} tokens a rank and second. Computing takes {:.3f} s of it, the "
      "update {:.3f} s,\nand {:.3f} s is communication that nothing hides.\n\n",
      run.shape.name, run.platform.name, platform::scope_text(run.platform.cluster->mesh),
      shard::triple_text(run.triple), step.seconds, tokens_a_second(run, step),
      step.compute_seconds, step.update_seconds, step.exposed_seconds());
  text += "Collectives of a rank, what it sends, and what they take, several at once:\n" +
          collectives_text(step) + "\n" + memory_text(memory);
  if (step.activation_wait_seconds > 0) {
    text += fmt::format("Forward and backward wait {:.3f} s for activations on drives.\n",
                        step.activation_wait_seconds);
  }
  if (!worth.empty()) text += "\nA step is longer without:\n" + worth;
  return text;
}

Result<std::string> shard_report_json(const ShardedRuns& runs) {
  const simulate::ShardedRun& run = runs.run;
  ASSIGN_OR_RETURN(const simulate::ShardedStep step, step_of(runs));
  ASSIGN_OR_RETURN(const shard::RankMemory memory, memory_of(runs));
  nlohmann::ordered_json report = {{"model", run.shape.name},
                                   {"platform", run.platform.name},
                                   {"sharding", shard::triple_text(run.triple)},
                                   {"seconds",
                                    {{"total", step.seconds},
                                     {"compute", step.compute_seconds},
                                     {"update", step.update_seconds},
                                     {"exposed", step.exposed_seconds()},
                                     {"activation_wait", step.activation_wait_seconds}}},
                                   {"tokens_per_rank_and_second", tokens_a_second(run, step)},
                                   {"memory_bytes", memory.total_bytes()},
                                   {"memory", rank_memory_json(memory)}};
  put_collectives(step, report);
  return json_text(report, 2);
}

}  // namespace sluice::cli
