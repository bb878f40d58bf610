#pragma once
// Databases of made-up runs of 30 steps, in one of which, or some, something is planted that makes
// them slower or quicker, and of healthy ones; with exact times and no clock.
//
// Thread contract: free functions that write files.

#include <string>
#include <vector>

#include "profiler/analyze/step_explanation.h"

namespace sluice::analyze {

struct SlowStep {
  std::string name;  // of its file, without ".db"
  StepRange steps = {};
  Cause cause = Cause::other;
  ReasonKind kind = ReasonKind::less_hidden;
  std::string operation = {};
  std::string device = {};
  std::string link = {};
  Cause second = Cause::count_;  // another one that is to have a reason
  std::string note = {};         // part of one; "": none is asked for
};
struct HealthyStep {
  std::string name;
  std::int64_t step = 0;
};

// Each writes FOLDER/NAME.db.
std::vector<SlowStep> write_slow_steps(const std::string& folder);
std::vector<HealthyStep> write_healthy_steps(const std::string& folder);

}  // namespace sluice::analyze
