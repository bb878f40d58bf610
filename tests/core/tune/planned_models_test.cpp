// How far plans are from their lower bounds, for the sample models: docs/planned_models.csv is made
// of it and held to it (SLUICE_WRITE_DOCS=1 rewrites it), docs/tuning.md has the distribution.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/units.h"
#include "core/simulate/simulation.h"
#include "core/tune/tier_plan.h"
#include "tests/core/tune/block_memory.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"

namespace sluice::tune {
namespace {

// Hundreds of simulated steps of large models: too many under a sanitizer.
#if !defined(SLUICE_SANITIZED)

const std::string kPageRoot = SLUICE_SOURCE_DIR;
const std::string kTable = kPageRoot + "/docs/planned_models.csv";
const std::string kHead = "model,cap,start,plan,bound,plan / bound,bound by,blocks\n";

std::vector<std::string> sample_models() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(kPageRoot + "/sample_models/models")) {
    names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

// The layers alone, on ten SmartSSDs; everything else as the simulation of published runs has it.
struct Planning {
  std::string model;
  std::int64_t cap_bytes = 0;

  Result<plan::RunPlan> plan_of(const std::vector<std::string>& settings) const {
    std::vector<std::string> all = {"devices=10", "batch=16", "wire=native"};
    all.insert(all.end(), settings.begin(), settings.end());
    ASSIGN_OR_RETURN(const settings::RunConfig config,
                     simulate::simulation_config(
                         kPageRoot + "/sample_models/models/" + model + ".toml",
                         kPageRoot + "/sample_models/platforms/smartssd-a5000.toml", all));
    return plan::plan_run(config);
  }
  TierPlan plan() const {
    PlanRequest request;
    request.plan_of = [this](const std::vector<std::string>& settings) {
      return plan_of(settings);
    };
    request.memory = blocks_on_accelerator(cap_bytes);
    request.held = {"gradient_tier", "state_cache", "activation_buffer",
                    "buffers",       "pipeline",    "wire"};
    request.simulations_max = 40;
    auto planned = plan_tiers(request);
    INFO(model << ": " << (planned.ok() ? std::string() : planned.error().message()));
    REQUIRE(planned.ok());
    return *std::move(planned);
  }
  std::int64_t kept_bytes() const {
    const auto run = plan_of({"activations=keep"});
    REQUIRE(run.ok());
    return block_bytes(*run);
  }
};

std::string seconds_text(double seconds) {
  return format_duration(static_cast<TimeNs>(seconds * 1e9));
}

// "12 keep, 36 recompute", of the blocks.
std::string counts_text(const plan::RunPlan& run) {
  std::string text;
  for (const char* word : {"keep", "recompute", "offload", "offload_inputs"}) {
    const model::Activations choice = model::LayerActivations::parse(word)->of(LayerId{0});
    int count = 0;
    for (std::int32_t l = 1; l <= run.shape.layers; ++l) {
      if (run.config.arithmetic.activations.of(LayerId{l}) == choice) ++count;
    }
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  }
  return text;
}

std::string row(const TierPlan& plan) {
  const std::string blocks = counts_text(plan.run);
  const bool is_quoted = blocks.find(',') != std::string::npos;
  return fmt::format("{},{},{},{},{},{:.2f},{},{}\n", plan.run.shape.name,
                     plan.memory.activations().cap_bytes == 0
                         ? "none"
                         : format_bytes(plan.memory.activations().cap_bytes),
                     seconds_text(plan.start_seconds), seconds_text(plan.step.total_seconds),
                     seconds_text(plan.bound.seconds), plan.step.total_seconds / plan.bound.seconds,
                     plan.bound.what, is_quoted ? '"' + blocks + '"' : blocks);
}

std::string distribution(const char* which, std::vector<double> ratios) {
  std::ranges::sort(ratios);
  return fmt::format("- {}: {:.2f} at least, {:.2f} in the middle, {:.2f} at most.\n", which,
                     ratios.front(), ratios[ratios.size() / 2], ratios.back());
}

// One without a cap, and one with it.
std::vector<TierPlan> plans_of(const std::string& model) {
  const std::int64_t kept_bytes = Planning{model}.kept_bytes();
  std::vector<TierPlan> plans;
  for (const std::int64_t cap_bytes : {std::int64_t{0}, kept_bytes / 2}) {
    plans.push_back(Planning{model, cap_bytes}.plan());
    const TierPlan& plan = plans.back();
    CHECK(plan.bound.seconds <= plan.step.total_seconds * (1 + 1e-9));
    CHECK((cap_bytes == 0 || plan.memory.activations().peak_bytes <= cap_bytes));
  }
  return plans;
}

struct Planned {
  std::string rows;
  std::string distributions;
};

Planned planned_models() {
  Planned planned;
  std::vector<double> free;
  std::vector<double> capped;
  for (const std::string& model : sample_models()) {
    const std::vector<TierPlan> plans = plans_of(model);
    free.push_back(plans[0].step.total_seconds / plans[0].bound.seconds);
    capped.push_back(plans[1].step.total_seconds / plans[1].bound.seconds);
    planned.rows += row(plans[0]) + row(plans[1]);
  }
  planned.distributions =
      distribution("without a cap", free) + distribution("with the cap", capped);
  return planned;
}

std::string text_of(const std::string& path) {
  std::stringstream found;
  found << std::ifstream(path).rdbuf();
  return found.str();
}

bool holds(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

// Small ones of both families; all of them take minutes.
const char* const kQuickModels[] = {"gpt2-0.34b", "gpt2-0.77b", "llama-7b", "tiny"};

TEST_CASE("docs/planned_models.csv shows how far plans are from their bounds") {
  const std::string table = text_of(kTable);
  if (!is_testing_all() && std::getenv("SLUICE_WRITE_DOCS") == nullptr) {
    for (const std::string& model : sample_models()) CHECK(holds(table, "\n" + model + ","));
    for (const std::string model : kQuickModels) {
      for (const TierPlan& plan : plans_of(model)) CHECK(holds(table, row(plan)));
    }
    return;
  }
  const Planned planned = planned_models();
  if (std::getenv("SLUICE_WRITE_DOCS") != nullptr) std::ofstream(kTable) << kHead + planned.rows;
  CHECK((text_of(kTable) == kHead + planned.rows));  // SLUICE_WRITE_DOCS=1 rewrites it
  CHECK(holds(text_of(kPageRoot + "/docs/tuning.md"), planned.distributions));
}

#endif

}  // namespace
}  // namespace sluice::tune
