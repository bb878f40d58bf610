#pragma once
// Plans and simulated steps of the models and platforms of sample_models/, by their names.

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"

namespace sluice::simulate {

inline std::string sample_model(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/models/" + name + ".toml";
}

inline std::string sample_platform(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/platforms/" + name + ".toml";
}

inline settings::RunConfig sample_config(const std::string& model, const std::string& platform,
                                         const std::vector<std::string>& settings) {
  auto config = simulation_config(sample_model(model), sample_platform(platform), settings);
  INFO((config.ok() ? std::string() : config.error().message()));
  REQUIRE(config.ok());
  return std::move(*config);
}

inline plan::RunPlan sample_plan(const std::string& model, const std::string& platform,
                                 const std::vector<std::string>& settings) {
  auto plan = plan::plan_run(sample_config(model, platform, settings));
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  return std::move(*plan);
}

inline SimulatedStep simulated(const plan::RunPlan& plan) {
  auto step = simulate_step(plan);
  INFO((step.ok() ? std::string() : step.error().message()));
  REQUIRE(step.ok());
  return std::move(*step);
}

// Bytes, read and written, over all links whose names end so.
inline std::array<double, 2> moved_bytes(const SimulatedStep& step, const std::string& ending) {
  std::array<double, 2> sum{};
  for (const LinkUse& link : step.links) {
    if (!link.name.ends_with(ending)) continue;
    for (const auto& phase : link.size_bytes) {
      for (std::size_t way = 0; way < 2; ++way) sum[way] += static_cast<double>(phase[way]);
    }
  }
  return sum;
}

}  // namespace sluice::simulate
