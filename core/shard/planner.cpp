#include "core/shard/planner.h"

#include <algorithm>
#include <tuple>

#include "base/units.h"

namespace sluice::shard {

Result<std::vector<Candidate>> plan_by_formula(const PlanProblem& problem) {
  const platform::Cluster& cluster = *problem.cluster;
  std::vector<Candidate> candidates;
  Candidate smallest;
  for (const Triple& triple : all_triples(cluster.mesh)) {
    const RankMemory memory = rank_memory(problem.step, triple, problem.activation_bytes);
    const std::int64_t size_bytes = memory.total_bytes();
    const bool is_first = smallest.memory.total_bytes() == 0;
    if (is_first || size_bytes < smallest.memory.total_bytes()) smallest = {triple, {}, memory};
    if (problem.memory_cap_bytes > 0 && size_bytes > problem.memory_cap_bytes) continue;
    candidates.push_back({triple, communication_time(cluster, problem.step, triple), memory});
  }
  if (candidates.empty()) {
    return make_error(ErrorCode::memory,
                      "no sharding over {} ranks fits into {} of memory a rank: the smallest cap "
                      "that works is {} bytes ({}), with {}",
                      platform::scope_text(cluster.mesh), format_bytes(problem.memory_cap_bytes),
                      smallest.memory.total_bytes(), format_bytes(smallest.memory.total_bytes()),
                      triple_text(smallest.triple));
  }
  std::ranges::stable_sort(candidates, {}, [](const Candidate& candidate) {
    return std::tuple(candidate.time.total(), candidate.memory.total_bytes());
  });
  return candidates;
}

}  // namespace sluice::shard
