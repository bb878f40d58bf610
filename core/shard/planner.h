#pragma once
// Which triple communicates least, by formula, under a cap of memory a rank: every legal one is
// looked at.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <vector>

#include "core/shard/cost.h"

namespace sluice::shard {

struct PlanProblem {
  const platform::Cluster* cluster = nullptr;
  StepShape step;
  std::int64_t activation_bytes = 0;
  std::int64_t memory_cap_bytes = 0;  // of a rank; 0: no cap
};

struct Candidate {
  Triple triple;
  CommunicationTime time;
  RankMemory memory;
};

// Those that fit, by time, then by memory, then as all_triples() has them; at least one. Errors
// (ErrorCode::memory): none fits; it says the smallest cap with which one would.
Result<std::vector<Candidate>> plan_by_formula(const PlanProblem& problem);

}  // namespace sluice::shard
