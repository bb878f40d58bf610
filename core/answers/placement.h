#pragma once
// Where everything should live in a step: the answer, for whoever prints it.
//
// Thread contract: plain data and free functions.

#include <map>
#include <string>
#include <vector>

#include "core/answers/json.h"
#include "core/tune/tier_plan.h"

namespace sluice::answers {

struct PlacementAnswer {
  const tune::TierPlan& plan;
  std::string command;                 // to which the planned settings are added
  std::vector<std::string> overrides;  // "key=value" that the plan began with
  double time_scale = 1;               // simulated times this are by the run's clock
  bool is_fitted = false;              // the platform was fitted to a recorded run

  // By which the step is longer than its bound; 0.1: by a tenth.
  double above_bound() const;
  // `command` with the planned settings, and those of `overrides` that were not planned.
  std::string full_command() const;
};

struct KindBytes {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
};

// The bytes of a step over the links of each kind.
std::map<std::string, KindBytes> bytes_by_kind(const tune::TierPlan& plan);

// {simulated, model, platform, seconds, bound, settings, memory, bytes, activations, ..., command}
Json to_json(const PlacementAnswer& answer);

}  // namespace sluice::answers
