#include "cli/shard_report.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/output.h"
#include "core/shard/planner.h"

namespace sluice::cli {
namespace {

using runtime::Stage;

constexpr std::array<Stage, 4> kCollectiveStages = {Stage::all_gather, Stage::reduce_scatter,
                                                    Stage::all_reduce, Stage::broadcast};

// What else a run can be told, a sharded step would not do.
Status check_overrides(const std::vector<std::string>& overrides) {
  constexpr std::array<std::string_view, 4> kKnown = {"batch", "sequence", "grad_accum_steps",
                                                      "activations"};
  for (const std::string& setting : overrides) {
    const std::string key = setting.substr(0, setting.find('='));
    if (std::ranges::count(kKnown, key) > 0) continue;
    return make_error(ErrorCode::config, "--set {}: with --shard there are {}", key,
                      fmt::join(kKnown, ", "));
  }
  return ok_status();
}

Result<model::Activations> activations_of(const settings::RunConfig& config,
                                          std::int32_t layer_count) {
  const model::LayerActivations& asked = config.arithmetic.activations;
  const model::Activations first = asked.of(LayerId{0});
  bool is_alike = !model::is_offloaded(first);
  for (std::int32_t l = 1; l < layer_count; ++l) is_alike &= asked.of(LayerId{l}) == first;
  if (is_alike) return first;
  return make_error(ErrorCode::config,
                    "activations={}: with --shard all layers keep, or all recompute", asked.text());
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

Result<shard::Triple> choose_triple(const shard::ShardedRun& run, const std::string& sharding) {
  const platform::Cluster& cluster = *run.platform.cluster;
  if (sharding != "auto") return shard::parse_triple(sharding, cluster.mesh);
  shard::PlanProblem problem;
  problem.cluster = &cluster;
  problem.step = shard::step_shape(run);
  problem.memory_cap_bytes = cluster.memory_bytes;
  ASSIGN_OR_RETURN(const std::vector<shard::Candidate> candidates, shard::plan_by_formula(problem));
  return candidates.front().triple;
}

double tokens_a_second(const shard::ShardedRun& run, const shard::ShardedStep& step) {
  return static_cast<double>(run.batch * run.sequence * run.micro_batches) / step.seconds;
}

shard::RankMemory memory_of(const shard::ShardedRun& run) {
  return shard::rank_memory(shard::step_shape(run), run.triple, shard::StateTier::memory, 0);
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

std::string memory_text(const shard::RankMemory& memory) {
  return fmt::format(
      "A rank keeps {}, activations aside: parameters {}, gradients {}, state {}, buffers {}\n",
      format_bytes(memory.total_bytes()), format_bytes(memory.parameter_bytes),
      format_bytes(memory.gradient_bytes), format_bytes(memory.state_bytes),
      format_bytes(memory.buffer_bytes));
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

Result<shard::ShardedRun> sharded_run(const settings::RunConfig& config,
                                      const ShardArguments& arguments) {
  RETURN_IF_ERROR(check_overrides(arguments.overrides));
  shard::ShardedRun run;
  ASSIGN_OR_RETURN(run.shape, model::load_model_shape(config.files.model));
  ASSIGN_OR_RETURN(run.platform, platform::load_platform(config.files.platform));
  if (!run.platform.cluster) {
    return make_error(ErrorCode::config, "{}: --shard needs [cluster], and it has none",
                      run.platform.source);
  }
  run.batch = config.batch.batch;
  run.sequence = config.batch.sequence;
  run.micro_batches = config.batch.grad_accum_steps;
  ASSIGN_OR_RETURN(run.activations, activations_of(config, run.shape.flat_layout().layer_count()));
  ASSIGN_OR_RETURN(run.overlaps, parse_overlaps(arguments.without));
  ASSIGN_OR_RETURN(run.triple, choose_triple(run, arguments.sharding));
  return run;
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
          collectives_text(step) + "\n" + memory_text(memory_of(run));
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
                                   {"memory_bytes", memory_of(run).total_bytes()}};
  for (const Stage stage : kCollectiveStages) {
    const shard::StageUse& use = step.of(stage);
    report["collectives"][std::string(runtime::stage_name(stage))] = {
        {"count", use.count}, {"bytes", use.size_bytes}, {"seconds", use.seconds}};
  }
  return json_text(report, 2);
}

}  // namespace sluice::cli
