#include "cli/rank_plan.h"

#include <algorithm>
#include <set>

#include "base/figure_text.h"
#include "base/shell_quoted.h"
#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/program.h"
#include "cli/progress_line.h"
#include "cli/rank_plan_report.h"
#include "cli/shard_report.h"
#include "cli/terminal.h"
#include "core/model/layer_places.h"
#include "core/simulate/drive_rank.h"
#include "core/simulate/simulation.h"

namespace sluice::cli {
namespace {

// How finely the planner divides the blocks between those that recompute and those that keep.
constexpr std::int64_t kParts = 8;

Status check_held(const std::vector<std::string>& held) {
  for (const std::string& key : held) {
    if (key == "activations") continue;
    return make_error(ErrorCode::config,
                      "--hold {}: with --ranks there is activations; --state says where the state "
                      "lies",
                      key);
  }
  return ok_status();
}

// All keep, all recompute, or the first blocks do, up to each eighth of them, behind what else the
// embedding is cut into, which keeps nothing. With state on drives
// the first blocks may leave, too, and the others keep or recompute.
Result<std::vector<model::LayerActivations>> choices_of(const simulate::ShardedRun& run,
                                                        const std::vector<std::string>& held,
                                                        bool may_leave) {
  if (!held.empty()) return std::vector{run.activations};
  std::vector<model::LayerActivations> choices = {model::Activations::keep,
                                                  model::Activations::recompute};
  const auto add = [&choices](const std::string& text) -> Status {
    ASSIGN_OR_RETURN(choices.emplace_back(), model::LayerActivations::parse(text));
    return ok_status();
  };
  std::set<std::int64_t> ends;
  for (std::int64_t part = 1; part <= kParts; ++part) {
    const std::int64_t blocks = std::max<std::int64_t>(1, run.shape.layers * part / kParts);
    ends.insert(layer_places(run.shape).embeddings - 1 + blocks);
  }
  for (const std::int64_t end : ends) {
    RETURN_IF_ERROR(add(fmt::format("recompute:1-{},keep", end)));
  }
  if (!may_leave) return choices;
  for (const std::int64_t end : ends) {
    for (const char* choice : {"offload", "offload_inputs"}) {
      for (const char* others : {"keep", "recompute"}) {
        RETURN_IF_ERROR(add(fmt::format("{}:1-{},{}", choice, end, others)));
      }
    }
  }
  return choices;
}

std::vector<simulate::StateTier> tiers_of(const simulate::ShardedRun& run,
                                          const std::string& asked) {
  if (!asked.empty()) return {run.state_tier};
  if (run.platform.devices.empty()) return {simulate::StateTier::memory};
  return {simulate::StateTier::memory, simulate::StateTier::drives};
}

// The command line of sluice simulate but for the settings that were planned.
std::string command_of(const RankPlanArguments& arguments, simulate::StateTier tier) {
  std::string command =
      fmt::format("{} simulate {} --platform {} --ranks {}", program(),
                  shell_quoted(arguments.model), shell_quoted(arguments.platform), arguments.ranks);
  for (const std::string& setting : arguments.overrides) {
    const bool has_setting = tier == simulate::StateTier::drives || is_setting_of_any_step(setting);
    if (has_setting && !setting.starts_with("activations=")) {
      command += " --set " + shell_quoted(setting);
    }
  }
  return command;
}

}  // namespace

Status plan_ranks(const RankPlanArguments& arguments) {
  RETURN_IF_ERROR(check_held(arguments.held));
  ASSIGN_OR_RETURN(
      const settings::RunConfig config,
      simulate::simulation_config(arguments.model, arguments.platform, arguments.overrides));
  ShardArguments asked;
  asked.ranks = arguments.ranks;
  asked.overrides = arguments.overrides;
  asked.state = arguments.state;
  simulate::SimulatedPlanRequest request;
  ASSIGN_OR_RETURN(request.run, unsharded_run(config, asked));
  request.state_tiers = tiers_of(request.run, arguments.state);
  const simulate::DriveRank drives = drive_rank(config, asked, request.run);
  request.drives = &drives;
  const bool may_leave = request.state_tiers.back() == simulate::StateTier::drives;
  ASSIGN_OR_RETURN(request.activations, choices_of(request.run, arguments.held, may_leave));
  request.memory_cap_bytes = rank_memory_cap_bytes(config, *request.run.platform.cluster);
  request.simulations_max = arguments.simulations;
  ProgressLine progress;
  request.on_try = [&](int tried) {
    progress.show(std::min(1.0, static_cast<double>(tried) / arguments.simulations),
                  fmt::format("{} steps simulated", format_whole(tried)));
  };
  request.stops = is_interrupted;
  install_interrupt_handler();
  const auto plan = simulate::plan_by_simulation(request);
  progress.finish();
  if (!plan.ok()) return plan.error();
  const RankPlanReport report{
      .request = request, .plan = *plan, .command = command_of(arguments, plan->best.state_tier)};
  print_lines(arguments.json ? rank_plan_json(report) + "\n"
                             : fitted(rank_plan_text(report), terminal_columns()));
  return ok_status();
}

}  // namespace sluice::cli
