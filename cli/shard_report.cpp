#include "cli/shard_report.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/output.h"
#include "core/platform/cluster_mesh.h"
#include "core/shard/planner.h"

namespace sluice::cli {
namespace {

using runtime::Stage;

constexpr std::array<Stage, 4> kCollectiveStages = {Stage::all_gather, Stage::reduce_scatter,
                                                    Stage::all_reduce, Stage::broadcast};

// What else a run can be told, a sharded step would not do.
Status check_overrides(const std::vector<std::string>& overrides) {
  constexpr std::array<std::string_view, 5> kKnown = {"batch", "sequence", "grad_accum_steps",
                                                      "activations", "accelerator_memory"};
  for (const std::string& setting : overrides) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::ranges::count(kKnown, key) > 0) continue;
    return make_error(ErrorCode::config, "--set {}: a sharded step has {}", key,
                      fmt::join(kKnown, ", "));
  }
  return ok_status();
}

Result<shard::StateTier> parse_state_tier(const std::string& text) {
  if (text == "memory") return shard::StateTier::memory;
  if (text == "drives") return shard::StateTier::drives;
  return make_error(ErrorCode::config, "--state {}: there are memory and drives", text);
}

Result<shard::Overlaps> parse_overlaps(const std::vector<std::string>& without) {
  const std::vector<std::string> known(shard::kOverlapNames.begin(), shard::kOverlapNames.end());
  shard::Overlaps overlaps = shard::Overlaps::all();
  for (const std::string& name : without) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      return make_error(ErrorCode::config, "--without {}: there are {}{}", name,
                        fmt::join(known, ", "), did_you_mean(name, known));
    }
    overlaps = overlaps.without(static_cast<shard::Overlap>(found - known.begin()));
  }
  return overlaps;
}

Result<platform::Cluster> cut_cluster(const platform::Cluster& cluster, const std::string& ranks) {
  ASSIGN_OR_RETURN(const platform::Scope mesh, platform::parse_scope(ranks));
  return platform::with_mesh(cluster, mesh);
}

Result<shard::Triple> choose_triple(const shard::ShardedRun& run, const std::string& sharding,
                                    std::int64_t cap_bytes) {
  const platform::Cluster& cluster = *run.platform.cluster;
  if (sharding != "auto") return shard::parse_triple(sharding, cluster.mesh);
  shard::PlanProblem problem;
  problem.cluster = &cluster;
  problem.step = shard::step_shape(run);
  problem.state_tier = run.state_tier;
  problem.activation_bytes = shard::run_memory(run).activation_bytes;
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

// How much longer a step is without each overlap that is on.
Result<std::string> worth_text(const shard::ShardedRun& run, double seconds) {
  std::string text;
  for (std::size_t i = 0; i < shard::kOverlapCount; ++i) {
    const auto overlap = static_cast<shard::Overlap>(i);
    if (!run.overlaps.has(overlap)) continue;
    shard::ShardedRun without = run;
    without.overlaps = run.overlaps.without(overlap);
    ASSIGN_OR_RETURN(const shard::ShardedStep step, shard::simulate_sharded(without));
    text += fmt::format("  {:<15} {:>9.3f} s\n", shard::kOverlapNames[i], step.seconds - seconds);
  }
  return text;
}

}  // namespace

Result<shard::ShardedRun> unsharded_run(const settings::RunConfig& config,
                                        const ShardArguments& arguments) {
  RETURN_IF_ERROR(check_overrides(arguments.overrides));
  shard::ShardedRun run;
  ASSIGN_OR_RETURN(run.shape, model::load_model_shape(config.files.model));
  ASSIGN_OR_RETURN(run.platform, platform::load_platform(config.files.platform));
  if (!run.platform.cluster) {
    return make_error(ErrorCode::config, "{}: sharding needs [cluster], and it has none",
                      run.platform.source);
  }
  if (!arguments.ranks.empty()) {
    const auto cut = cut_cluster(*run.platform.cluster, arguments.ranks);
    if (!cut.ok()) return cut.error().with_context("--ranks " + arguments.ranks);
    run.platform.cluster = *cut;
  }
  run.batch = config.batch.batch;
  run.sequence = config.batch.sequence;
  run.micro_batches = config.batch.grad_accum_steps;
  run.activations = config.arithmetic.activations;
  ASSIGN_OR_RETURN(run.state_tier, parse_state_tier(arguments.state));
  ASSIGN_OR_RETURN(run.overlaps, parse_overlaps(arguments.without));
  RETURN_IF_ERROR(shard::check_sharded(run));
  return run;
}

std::int64_t rank_memory_cap_bytes(const settings::RunConfig& config,
                                   const platform::Cluster& cluster) {
  const std::int64_t asked_bytes = config.resources.accelerator_memory_bytes;
  return asked_bytes > 0 ? asked_bytes : cluster.memory_bytes;
}

Result<shard::ShardedRun> sharded_run(const settings::RunConfig& config,
                                      const ShardArguments& arguments) {
  ASSIGN_OR_RETURN(shard::ShardedRun run, unsharded_run(config, arguments));
  ASSIGN_OR_RETURN(run.triple, choose_triple(run, arguments.sharding,
                                             rank_memory_cap_bytes(config, *run.platform.cluster)));
  return run;
}

double tokens_a_second(const shard::ShardedRun& run, const shard::ShardedStep& step) {
  return static_cast<double>(run.batch * run.sequence * run.micro_batches) / step.seconds;
}

std::string collectives_text(const shard::ShardedStep& step) {
  std::string text;
  for (const Stage stage : kCollectiveStages) {
    const shard::StageUse& use = step.of(stage);
    if (use.count == 0) continue;
    text += fmt::format("  {:<15} {:>6} times {:>10} {:>9.3f} s\n", runtime::stage_name(stage),
                        use.count, format_bytes(use.size_bytes), use.seconds);
  }
  return text.empty() ? "  none\n" : text;
}

void put_collectives(const shard::ShardedStep& step, nlohmann::ordered_json& report) {
  for (const Stage stage : kCollectiveStages) {
    const shard::StageUse& use = step.of(stage);
    report["collectives"][std::string(runtime::stage_name(stage))] = {
        {"count", use.count}, {"bytes", use.size_bytes}, {"seconds", use.seconds}};
  }
}

nlohmann::ordered_json rank_memory_json(const shard::RankMemory& memory) {
  return {{"parameters", memory.parameter_bytes}, {"gradients", memory.gradient_bytes},
          {"state", memory.state_bytes},          {"activations", memory.activation_bytes},
          {"buffers", memory.buffer_bytes},       {"state_on_drives", memory.drive_bytes}};
}

Result<std::string> shard_report_text(const shard::ShardedRun& run) {
  ASSIGN_OR_RETURN(const shard::ShardedStep step, shard::simulate_sharded(run));
  ASSIGN_OR_RETURN(const std::string worth, worth_text(run, step.seconds));
  std::string text = fmt::format(
      "SIMULATED: {} on {}, {} ranks; parameters, gradients and state over {}\n\n"
      "A step takes {:.3f} s, {:.0f} tokens a rank and second. Computing takes {:.3f} s of it, the "
      "update {:.3f} s,\nand {:.3f} s is communication that nothing hides.\n\n",
      run.shape.name, run.platform.name, platform::scope_text(run.platform.cluster->mesh),
      shard::triple_text(run.triple), step.seconds, tokens_a_second(run, step),
      step.compute_seconds, step.update_seconds, step.exposed_seconds());
  text += "Collectives of a rank, what it sends, and what they take, several at once:\n" +
          collectives_text(step) + "\n" + memory_text(shard::run_memory(run));
  if (!worth.empty()) text += "\nA step is longer without:\n" + worth;
  return text;
}

Result<std::string> shard_report_json(const shard::ShardedRun& run) {
  ASSIGN_OR_RETURN(const shard::ShardedStep step, shard::simulate_sharded(run));
  nlohmann::ordered_json report = {{"model", run.shape.name},
                                   {"platform", run.platform.name},
                                   {"sharding", shard::triple_text(run.triple)},
                                   {"seconds",
                                    {{"total", step.seconds},
                                     {"compute", step.compute_seconds},
                                     {"update", step.update_seconds},
                                     {"exposed", step.exposed_seconds()}}},
                                   {"tokens_per_rank_and_second", tokens_a_second(run, step)},
                                   {"memory_bytes", shard::run_memory(run).total_bytes()},
                                   {"memory", rank_memory_json(shard::run_memory(run))}};
  put_collectives(step, report);
  return json_text(report, 2);
}

}  // namespace sluice::cli
