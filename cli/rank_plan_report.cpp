#include "cli/rank_plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/units.h"
#include "cli/output.h"
#include "cli/shard_report.h"
#include "cli/simulate_report.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

using simulate::PlanCandidate;

constexpr int kRankPlanColumns = 80;
constexpr std::size_t kShownOthers = 5;

const char* tier_name(simulate::StateTier tier) {
  return tier == simulate::StateTier::drives ? "drives" : "memory";
}

const platform::Scope& mesh_of(const RankPlanReport& report) {
  return report.request.run.platform.cluster->mesh;
}

double distance(const simulate::SimulatedPlan& plan) {
  return std::max(0.0, plan.best.step->seconds / plan.bound_seconds - 1);
}

// One a sharding: the best; that of the planned sharding has other choices than the plan.
std::vector<const PlanCandidate*> shown_others(const simulate::SimulatedPlan& plan) {
  std::vector<const PlanCandidate*> shown;
  for (const PlanCandidate& other : plan.others) {
    const auto is_alike = [&](const PlanCandidate* one) { return one->triple == other.triple; };
    if (shown.size() < kShownOthers && std::ranges::none_of(shown, is_alike)) {
      shown.push_back(&other);
    }
  }
  return shown;
}

// The collective that grows most, by formula.
std::string longer_collective(const PlanCandidate& other, const PlanCandidate& best) {
  constexpr std::array<const char*, shard::kPurposeCount> kWords = {
      "gathered parameters", "scattered gradients", "gradients summed in between",
      "the sum of all gradients", "updated parameters"};
  std::size_t most = 0;
  const auto growth = [&](std::size_t purpose) {
    return other.formula.communication.seconds[purpose] -
           best.formula.communication.seconds[purpose];
  };
  for (std::size_t i = 1; i < shard::kPurposeCount; ++i) {
    if (growth(i) > growth(most)) most = i;
  }
  return growth(most) > 0 ? std::string(" for ") + kWords[most] : "";
}

// By what most of the difference is.
std::string why_longer(const PlanCandidate& other, const PlanCandidate& best) {
  const double compute = other.step->compute_seconds - best.step->compute_seconds;
  const double update = other.step->update_seconds - best.step->update_seconds;
  const double exposed = other.step->exposed_seconds() - best.step->exposed_seconds();
  if (other.step->seconds <= best.step->seconds) {
    return fmt::format("as fast, and takes {}", format_bytes(other.memory.total_bytes()));
  }
  if (compute >= update && compute >= exposed)
    return format_seconds(compute) + " more is recomputed";
  if (update >= exposed) {
    return fmt::format("its update takes {} longer{}", format_seconds(update),
                       other.state_tier == best.state_tier ? "" : ", on drives");
  }
  return fmt::format("waits {} longer{}", format_seconds(exposed), longer_collective(other, best));
}

std::string head_lines(const RankPlanReport& report) {
  const simulate::SimulatedPlan& plan = report.plan;
  const simulate::ShardedRun& run = report.request.run;
  std::string text = fmt::format(
      "PLANNED by simulated steps: {} on {}, {} ranks (in a node x nodes)\n"
      "A step: {}, {:.0f} tokens a rank and second.\n"
      "No choice that fits takes less than {} ({:+.0f} %).\n",
      run.shape.name, run.platform.name, platform::scope_text(mesh_of(report)),
      format_seconds(plan.best.step->seconds), tokens_a_second(run, *plan.best.step),
      format_seconds(plan.bound_seconds), 100 * distance(plan));
  const std::string scheme = shard::scheme_of(plan.best.triple, mesh_of(report));
  text += fmt::format("\n  sharding={}{}\n  activations={}\n  state={}\n",
                      shard::triple_text(plan.best.triple),
                      scheme.empty() ? "  parameters, gradients, state" : "  " + scheme,
                      plan.best.activations.text(), tier_name(plan.best.state_tier));
  if (run.platform.devices.empty()) {
    text += "State stays in memory: the platform has no [[device]] for it.\n";
  }
  if (plan.no_drives) {
    text += fmt::format("No rank has its state on drives: {}.\n", plan.no_drives->message());
  }
  return text;
}

std::string activation_line(const simulate::ShardedStep& step) {
  if (step.activation_wait_seconds <= 0) return "";
  return fmt::format("  activations      {:>9}  in which computing waits for them, of the update\n",
                     format_seconds(step.activation_wait_seconds));
}

std::string time_lines(const simulate::ShardedStep& step) {
  return fmt::format(
      "\nOf a step:\n  computing        {:>9}\n  update           {:>9}\n"
      "  waiting          {:>9}  for collectives that nothing hides\n{}"
      "\nCollectives of a rank, what it sends, and what they take, several at once:\n{}",
      format_seconds(step.compute_seconds), format_seconds(step.update_seconds),
      format_seconds(step.exposed_seconds()), activation_line(step), collectives_text(step));
}

std::string memory_lines(const RankPlanReport& report) {
  const shard::RankMemory& memory = report.plan.best.memory;
  const std::int64_t cap_bytes = report.request.memory_cap_bytes;
  std::string text = "\nMemory of a rank:\n";
  const auto add = [&](const char* what, std::int64_t bytes) {
    text += fmt::format("  {:<15} {:>10}\n", what, format_bytes(bytes));
  };
  add("parameters", memory.parameter_bytes);
  add("gradients", memory.gradient_bytes);
  add("state", memory.state_bytes);
  add("activations", memory.activation_bytes);
  add("buffers", memory.buffer_bytes);
  text += fmt::format("  {:<15} {:>10}  {}\n", "together", format_bytes(memory.total_bytes()),
                      cap_bytes > 0 ? "of " + format_bytes(cap_bytes)
                                    : "no cap: set accelerator_memory, or memory in [cluster]");
  if (memory.drive_bytes > 0) add("on its drives", memory.drive_bytes);
  return text;
}

std::string other_lines(const simulate::SimulatedPlan& plan) {
  std::string text;
  for (const PlanCandidate* other : shown_others(plan)) {
    text += fmt::format("  {:>9}  {}, {}, state in {}: {}\n", format_seconds(other->step->seconds),
                        shard::triple_text(other->triple), other->activations.text(),
                        tier_name(other->state_tier), why_longer(*other, plan.best));
  }
  if (plan.too_large && plan.too_large->bound_seconds < plan.best.step->seconds) {
    text +=
        fmt::format("  {:>9}  {}, {}: does not fit, since it takes {} of memory a rank\n", "-",
                    shard::triple_text(plan.too_large->triple), plan.too_large->activations.text(),
                    format_bytes(plan.too_large->memory.total_bytes()));
  }
  return text.empty() ? "" : "\nWhy no other:\n" + text;
}

std::string search_line(const simulate::SimulatedPlan& plan) {
  return fmt::format(
      "\n{} of {} choices fit; {} step{} simulated{}.\n", plan.fitting_count, plan.candidate_count,
      plan.simulated_count, plan.simulated_count == 1 ? "" : "s",
      plan.is_exhaustive ? "; no other choice is shorter" : ", and the search was ended there");
}

std::string full_command(const RankPlanReport& report) {
  const PlanCandidate& best = report.plan.best;
  return fmt::format("{} --shard {} --state {} --set activations={}", report.command,
                     shard::triple_text(best.triple), tier_name(best.state_tier),
                     best.activations.text());
}

nlohmann::ordered_json candidate_json(const PlanCandidate& candidate) {
  nlohmann::ordered_json json = {{"sharding", shard::triple_text(candidate.triple)},
                                 {"activations", candidate.activations.text()},
                                 {"state", tier_name(candidate.state_tier)},
                                 {"formula_seconds", candidate.formula.total()},
                                 {"memory_bytes", candidate.memory.total_bytes()}};
  json["seconds"] = nullptr;
  if (candidate.step) json["seconds"] = candidate.step->seconds;
  return json;
}

}  // namespace

std::string rank_plan_text(const RankPlanReport& report) {
  return head_lines(report) + time_lines(*report.plan.best.step) + memory_lines(report) +
         other_lines(report.plan) + search_line(report.plan) + "\n  " +
         command_lines(full_command(report), kRankPlanColumns, 2) + "\n";
}

std::string rank_plan_json(const RankPlanReport& report) {
  const simulate::SimulatedPlan& plan = report.plan;
  const simulate::ShardedStep& step = *plan.best.step;
  const simulate::ShardedRun& run = report.request.run;
  nlohmann::ordered_json json = {{"simulated", true},
                                 {"model", run.shape.name},
                                 {"platform", run.platform.name},
                                 {"ranks", platform::scope_text(mesh_of(report))}};
  json["plan"] = candidate_json(plan.best);
  json["seconds"] = {
      {"planned", step.seconds},           {"bound", plan.bound_seconds},
      {"compute", step.compute_seconds},   {"update", step.update_seconds},
      {"exposed", step.exposed_seconds()}, {"activation_wait", step.activation_wait_seconds}};
  json["tokens_per_rank_and_second"] = tokens_a_second(run, step);
  json["memory"] = rank_memory_json(plan.best.memory);
  json["memory"]["peak_bytes"] = plan.best.memory.total_bytes();
  json["memory"]["cap_bytes"] = report.request.memory_cap_bytes;
  put_collectives(step, json);
  json["others"] = nlohmann::ordered_json::array();
  for (const PlanCandidate* other : shown_others(plan)) {
    json["others"].push_back(candidate_json(*other));
    json["others"].back()["why"] = why_longer(*other, plan.best);
  }
  json["too_large"] = nullptr;
  if (plan.too_large) json["too_large"] = candidate_json(*plan.too_large);
  json["no_drives"] = nullptr;
  if (plan.no_drives) json["no_drives"] = plan.no_drives->message();
  json["candidates"] = plan.candidate_count;
  json["fitting"] = plan.fitting_count;
  json["simulations"] = plan.simulated_count;
  json["exhaustive"] = plan.is_exhaustive;
  json["command"] = full_command(report);
  return json_text(json, 2);
}

}  // namespace sluice::cli
