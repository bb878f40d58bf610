#pragma once
// A step in simulated time, and sweeps of such steps, as JSON.
//
// Thread contract: plain data and free functions.

#include <string>
#include <vector>

#include "core/answers/json.h"
#include "core/simulate/drive_wear.h"
#include "core/simulate/simulation.h"

namespace sluice::answers {

// {drive, endurance_bytes, written_bytes, life_steps, life_years}; a life without end is null.
Json to_json(const simulate::DriveWear& wear);

// {seconds, steps, bytes and busy of each link and engine, ..., settings}.
Json simulated_json(const plan::RunPlan& plan, const simulate::SimulatedStep& step);

// A value of the setting that a sweep goes through, and the step with it.
struct SweepRow {
  std::string value;
  simulate::SimulatedStep step;
};

// {key, rows}
Json sweep_json(const std::string& key, const std::vector<SweepRow>& rows);

}  // namespace sluice::answers
