#pragma once
// The settings that a plan chooses besides `activations`, a row each. A setting that is to be
// planned, too, is one row more in plan_knobs.cpp: its key, its values, which of them takes the
// least memory, whether that is memory which activations would take, too, and what it decides.
// Values that a run refuses or that do not fit are passed over, so a row need not know what goes
// with what.
//
// Thread contract: plain data and free functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sluice::plan {
struct RunPlan;
}

namespace sluice::tune {

struct PlanKnob {
  const char* key;
  const char* least;  // the value that takes the least memory
  // The best of it depends on the layers, and the other way round: a search for each of its values.
  bool competes;
  // The values that are tried for a run; empty: the setting stays as it is.
  std::vector<std::string> (*values)(const plan::RunPlan& run, std::int64_t commit_every_max);
  const char* what;  // it decides
};

std::span<const PlanKnob> plan_knobs();

}  // namespace sluice::tune
