#include "core/simulate/simulated_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "core/shard/activation_memory.h"
#include "core/simulate/drive_rank.h"
#include "core/simulate/memory_rank.h"

namespace sluice::simulate {

using shard::Purpose;
using shard::Triple;

namespace {

const char* tier_words(StateTier tier) {
  return tier == StateTier::drives ? ", state on drives" : "";
}

// The figures that all shardings with these activations have in common.
struct KeptRun {
  KeptRun(const ShardedRun& run, const model::LayerActivations& kept) : activations(kept) {
    ShardedRun with = run;
    with.activations = kept;
    step = step_shape(with);
    for (const plan::LayerCost& layer : layer_costs(with)) {
      micro_batch_ns += layer.forward_ns + layer.backward_ns;
    }
    activation_bytes =
        shard::kept_activation_bytes(run.shape, run.precision, run.batch, run.sequence, kept);
  }
  double compute_seconds() const {
    return static_cast<double>(step.micro_batches * micro_batch_ns) / 1e9;
  }

  model::LayerActivations activations;
  shard::StepShape step;
  TimeNs micro_batch_ns = 0;  // forward and backward
  std::int64_t activation_bytes = 0;
};

// A step has at least: its computing and update; and the collectives of each kind of group, which
// are done one after the other: gathers and scatters take turns, and so do both kinds of buckets
// (rank_step.h).
double memory_rank_bound(const FormulaTime& formula) {
  const auto sum = [&formula](Purpose a, Purpose b) {
    return formula.communication.of(a) + formula.communication.of(b);
  };
  return std::max(
      {formula.compute_seconds + formula.update_seconds, sum(Purpose::gather, Purpose::scatter),
       sum(Purpose::accumulate, Purpose::reduce), formula.communication.of(Purpose::share)});
}

PlanCandidate in_memory(const platform::Cluster& cluster, const KeptRun& kept,
                        const Triple& triple) {
  PlanCandidate candidate;
  candidate.triple = triple;
  candidate.activations = kept.activations;
  candidate.memory = shard::rank_memory(kept.step, triple, kept.activation_bytes);
  candidate.formula.compute_seconds = kept.compute_seconds();
  candidate.formula.update_seconds =
      static_cast<double>(shard::update_ns(cluster, kept.step, triple)) / 1e9;
  candidate.formula.communication = shard::communication_time(cluster, kept.step, triple);
  candidate.bound_seconds = memory_rank_bound(candidate.formula);
  return candidate;
}

// All that there is to choose from, except what cannot be.
class Candidates {
 public:
  explicit Candidates(const SimulatedPlanRequest& request)
      : request_(request), triples_(shard::all_triples(request.run.platform.cluster->mesh)) {}

  Result<std::vector<PlanCandidate>> all() {
    for (const model::LayerActivations& activations : request_.activations) {
      for (const StateTier tier : request_.state_tiers) {
        if (tier == StateTier::drives) {
          RETURN_IF_ERROR(add_on_drives(activations));
        } else if (!leaves_memory(request_.run.shape, activations)) {
          add_in_memory(activations);
        }
      }
    }
    if (!candidates_.empty()) return candidates_;
    if (refused_) return *refused_;
    return make_error(ErrorCode::config,
                      "activations={}: nothing leaves memory in these steps; --state drives has "
                      "steps in which it does",
                      request_.activations.front().text());
  }

  // Why the first with state on drives cannot be, where none can.
  std::optional<Error> no_drives() const {
    const bool has_some = std::ranges::any_of(
        candidates_, [](const PlanCandidate& one) { return one.state_tier == StateTier::drives; });
    return has_some ? std::nullopt : refused_;
  }

 private:
  void add_in_memory(const model::LayerActivations& activations) {
    const KeptRun kept(request_.run, activations);
    for (const Triple& triple : triples_) {
      candidates_.push_back(in_memory(*request_.run.platform.cluster, kept, triple));
    }
  }

  // The scope of the gradients changes nothing in such a step: a rank has of them what it updates.
  Status add_on_drives(const model::LayerActivations& activations) {
    for (const Triple& triple : triples_) {
      if (triple.gradients != triple.state) continue;
      PlanCandidate candidate;
      candidate.triple = triple;
      candidate.activations = activations;
      candidate.state_tier = StateTier::drives;
      const auto choice = request_.drives->choice(with_choices(request_.run, candidate));
      if (!choice.ok()) {
        const ErrorCode code = choice.error().code();
        if (code != ErrorCode::memory && code != ErrorCode::config) return choice.error();
        if (!refused_) refused_ = choice.error();
        continue;
      }
      candidate.memory = choice->memory;
      candidate.formula = choice->formula;
      candidate.bound_seconds = choice->bound_seconds;
      candidates_.push_back(std::move(candidate));
    }
    return ok_status();
  }

  const SimulatedPlanRequest& request_;
  std::vector<Triple> triples_;
  std::vector<PlanCandidate> candidates_;
  std::optional<Error> refused_;  // the first
};

Error nothing_fits(const SimulatedPlanRequest& request,
                   const std::vector<PlanCandidate>& candidates) {
  const auto smallest = std::ranges::min_element(
      candidates, {}, [](const PlanCandidate& one) { return one.memory.total_bytes(); });
  return make_error(ErrorCode::memory,
                    "no sharding over {} ranks fits into {} of memory a rank: the smallest cap "
                    "that works is {} bytes ({}), with {}, activations={}{}",
                    platform::scope_text(request.run.platform.cluster->mesh),
                    format_bytes(request.memory_cap_bytes), smallest->memory.total_bytes(),
                    format_bytes(smallest->memory.total_bytes()),
                    shard::triple_text(smallest->triple), smallest->activations.text(),
                    tier_words(smallest->state_tier));
}

bool by_formula(const PlanCandidate& a, const PlanCandidate& b) {
  const auto key = [](const PlanCandidate& one) {
    return std::tuple(one.formula.total(), one.memory.total_bytes());
  };
  return key(a) < key(b);
}

bool by_step(const PlanCandidate& a, const PlanCandidate& b) {
  const auto key = [](const PlanCandidate& one) {
    return std::tuple(one.step->seconds, one.memory.total_bytes());
  };
  return key(a) < key(b);
}

// Simulates what may be shorter than the shortest so far.
class Search {
 public:
  explicit Search(const SimulatedPlanRequest& request) : request_(request) {}

  // `fitting`: by formula, the best first.
  Status run(std::vector<PlanCandidate>& fitting) {
    double best_seconds = std::numeric_limits<double>::infinity();
    for (PlanCandidate& candidate : fitting) {
      const bool is_compared = std::ssize(seen_) < request_.compared_triples && is_new(candidate);
      if (candidate.bound_seconds >= best_seconds && !is_compared) continue;
      if (is_over()) {
        is_exhaustive_ &= candidate.bound_seconds >= best_seconds;
        continue;
      }
      Result<ShardedStep> step = step_of(request_.drives, with_choices(request_.run, candidate));
      if (!step.ok()) {
        if (!can_be_passed_over(candidate, step.error())) return step.error();
        continue;
      }
      candidate.step = std::move(*step);
      if (is_new(candidate)) seen_.push_back(candidate.triple);
      best_seconds = std::min(best_seconds, candidate.step->seconds);
      ++simulated_count_;
      if (request_.on_try) request_.on_try(simulated_count_);
    }
    return ok_status();
  }
  int simulated_count() const { return simulated_count_; }
  // Why a candidate could not be simulated, if one could not.
  const std::optional<Error>& refused() const { return refused_; }
  bool is_exhaustive() const { return is_exhaustive_; }

 private:
  // The simulation finds what a formula does not: a drive, a device or the host that is too small.
  bool can_be_passed_over(const PlanCandidate& candidate, const Error& error) {
    if (!refused_) refused_ = error;
    return candidate.state_tier == StateTier::drives &&
           (error.code() == ErrorCode::memory || error.code() == ErrorCode::config);
  }
  bool is_new(const PlanCandidate& candidate) const {
    return std::ranges::count(seen_, candidate.triple) == 0;
  }
  bool is_over() const {
    if (simulated_count_ == 0) return false;
    return simulated_count_ >= request_.simulations_max || (request_.stops && request_.stops());
  }

  const SimulatedPlanRequest& request_;
  std::vector<Triple> seen_;  // of which one was simulated
  std::optional<Error> refused_;
  int simulated_count_ = 0;
  bool is_exhaustive_ = true;
};

}  // namespace

ShardedRun with_choices(const ShardedRun& run, const PlanCandidate& candidate) {
  ShardedRun with = run;
  with.triple = candidate.triple;
  with.activations = candidate.activations;
  with.state_tier = candidate.state_tier;
  return with;
}

Result<ShardedStep> step_of(const DriveRank* drives, const ShardedRun& run) {
  if (run.state_tier == StateTier::memory) return memory_rank_step(run);
  CHECK(drives != nullptr);
  return drives->step(run);
}

Result<SimulatedPlan> plan_by_simulation(const SimulatedPlanRequest& request) {
  CHECK(!request.activations.empty());
  CHECK(!request.state_tiers.empty());
  ShardedRun checked = request.run;
  checked.activations = model::Activations::keep;  // those of the request are looked at apart
  RETURN_IF_ERROR(check_sharded(checked));
  Candidates choices(request);
  ASSIGN_OR_RETURN(std::vector<PlanCandidate> candidates, choices.all());
  SimulatedPlan plan;
  plan.no_drives = choices.no_drives();
  plan.candidate_count = static_cast<int>(candidates.size());
  const std::int64_t cap_bytes = request.memory_cap_bytes;
  const auto too_large = std::ranges::stable_partition(candidates, [&](const PlanCandidate& one) {
    return cap_bytes == 0 || one.memory.total_bytes() <= cap_bytes;
  });
  if (!too_large.empty()) plan.too_large = *std::ranges::min_element(too_large, by_formula);
  if (std::ssize(too_large) == std::ssize(candidates)) return nothing_fits(request, candidates);
  candidates.erase(too_large.begin(), too_large.end());
  std::ranges::stable_sort(candidates, by_formula);
  plan.fitting_count = static_cast<int>(candidates.size());
  plan.bound_seconds =
      std::ranges::min_element(candidates, {}, &PlanCandidate::bound_seconds)->bound_seconds;
  Search search(request);
  RETURN_IF_ERROR(search.run(candidates));
  plan.simulated_count = search.simulated_count();
  plan.is_exhaustive = search.is_exhaustive();
  std::erase_if(candidates, [](const PlanCandidate& one) { return !one.step; });
  if (candidates.empty()) return *search.refused();
  const bool has_drives = std::ranges::any_of(
      candidates, [](const PlanCandidate& one) { return one.state_tier == StateTier::drives; });
  if (!has_drives && search.refused()) plan.no_drives = search.refused();
  std::ranges::stable_sort(candidates, by_step);
  plan.best = std::move(candidates.front());
  plan.others.assign(std::make_move_iterator(candidates.begin() + 1),
                     std::make_move_iterator(candidates.end()));
  return plan;
}

}  // namespace sluice::simulate
