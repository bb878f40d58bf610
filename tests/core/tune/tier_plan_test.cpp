// A whole plan: against all choices of layers by simulated steps, under caps, and what it says of
// itself.

#include "core/tune/tier_plan.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>

#include "core/simulate/simulation.h"
#include "core/tune/layer_problem.h"
#include "core/tune/plan_knobs.h"
#include "tests/core/tune/block_memory.h"
#include "tests/sanitizer.h"
#include "tests/test_all.h"

namespace sluice::tune {
namespace {

using model::Activations;

struct Rates {
  double matmul = 1e12;
  double drive_read = 1e9;
  double drive_write = 1e9;
  double host_link = 4e9;
  const char* duplex = "half";
};

platform::Platform machine_of(const Rates& rates) {
  const std::string text = fmt::format(
      "name = 'one drive'\n[[link]]\nname = 'host'\nread = '{3} B/s'\nwrite = '{3} B/s'\n"
      "duplex = 'full'\n[host]\nmemory = '64 GB'\nadamw = '1 Gelem/s'\nstage = '20 Gelem/s'\n"
      "[compute]\nmatmul = '{0} FLOP/s'\n[[device]]\nname = 'drive'\ncount = 2\nvia = ['host']\n"
      "[device.drive]\nduplex = '{4}'\nread = '{1} B/s'\nwrite = '{2} B/s'\n",
      static_cast<std::int64_t>(rates.matmul), static_cast<std::int64_t>(rates.drive_read),
      static_cast<std::int64_t>(rates.drive_write), static_cast<std::int64_t>(rates.host_link),
      rates.duplex);
  const auto platform = platform::parse_platform(text, "drive.toml");
  INFO((platform.ok() ? std::string() : platform.error().message()));
  REQUIRE(platform.ok());
  return *platform;
}

MemoryModel memory_model() { return blocks_in_host_memory(); }

struct Case {
  int layers = 4;
  Rates rates;
  std::vector<std::string> settings;

  Result<plan::RunPlan> plan_of(const std::vector<std::string>& overrides) const {
    std::vector<std::string> all = {"method=host",       "devices=2", "batch=8",
                                    "sequence=128",      "buffers=2", "subgroup_elements=400000",
                                    "bounce_memory=8MiB"};
    all.insert(all.end(), settings.begin(), settings.end());
    all.insert(all.end(), overrides.begin(), overrides.end());
    ASSIGN_OR_RETURN(
        const settings::RunConfig config,
        settings::parse_run_config("name = 'p'\nmodel = 'm'\nplatform = 'p'\ntext = 'none'\n",
                                   "p.toml", all));
    return plan::plan_run(config, {"small", layers, 128, 4, 128, 256}, machine_of(rates));
  }
  PlanRequest request() const {
    PlanRequest request;
    request.plan_of = [this](const std::vector<std::string>& overrides) {
      return plan_of(overrides);
    };
    request.memory = memory_model();
    return request;
  }
};

TierPlan planned(const Case& machine) {
  auto plan = plan_tiers(machine.request());
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  return *std::move(plan);
}

std::int64_t host_peak_bytes(const Case& machine, const std::string& activations) {
  auto run = machine.plan_of({"activations=" + activations});
  REQUIRE(run.ok());
  return tier_memory(*run, memory_model()).uses[0].peak_bytes;
}

Case random_case(std::mt19937& random) {
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  Case machine;
  machine.layers = 2 + static_cast<int>(random() % 3);
  machine.rates.matmul = std::pow(10, between(11, 13));
  machine.rates.drive_read = std::pow(10, between(8, 10));
  machine.rates.drive_write = machine.rates.drive_read * between(0.4, 1);
  machine.rates.host_link = std::pow(10, between(9, 10));
  machine.rates.duplex = random() % 2 == 0 ? "half" : "full";
  machine.settings = {random() % 2 == 0 ? "pipeline=nbuffer" : "pipeline=serial",
                      random() % 2 == 0 ? "gradient_tier=memory" : "gradient_tier=storage",
                      random() % 2 == 0 ? "prefetch=true" : "prefetch=false"};
  const std::int64_t most = host_peak_bytes(machine, "keep");
  const std::int64_t least = host_peak_bytes(machine, "recompute");
  machine.settings.push_back(fmt::format(
      "host_memory={}",
      least + static_cast<std::int64_t>(between(-0.1, 1) * static_cast<double>(most - least))));
  return machine;
}

// Every choice of the blocks and the head, by the simulated step of a run with it.
struct Exhaustive {
  double least = kForEver;
  int fitting_count = 0;
};

void try_all(const Case& machine, const LayerProblem& problem, LayerChoices& choices,
             Exhaustive& found) {
  if (choices.size() < problem.layers.size()) {
    for (const Activations choice : problem.layers[choices.size()].allowed) {
      choices.push_back(choice);
      try_all(machine, problem, choices, found);
      choices.pop_back();
    }
    return;
  }
  auto run = machine.plan_of({"activations=" + layers_text(choices)});
  REQUIRE(run.ok());
  if (!tier_memory(*run, memory_model()).fits()) return;
  found.fitting_count += 1;
  const auto step = simulate::simulate_step(*run);
  REQUIRE(step.ok());
  CHECK(least_seconds(problem, choices) <= step->total_seconds * (1 + 1e-9));
  found.least = std::min(found.least, step->total_seconds);
}

// A hundred are thirty thousand simulated steps.
int case_count() {
  if (kIsSanitized) return 2;
  return is_testing_all() ? 100 : 30;
}

TEST_CASE("on random machines the planned layers are the best of all, by simulated steps") {
  std::mt19937 random(11);
  for (int i = 0; i < case_count(); ++i) {
    const Case machine = random_case(random);
    PlanRequest request = machine.request();
    for (const PlanKnob& knob : plan_knobs()) request.held.emplace_back(knob.key);
    request.simulations_max = 5000;
    const auto base = machine.plan_of({});
    REQUIRE(base.ok());
    auto problem = layer_problem(*base, memory_model());
    REQUIRE(problem.ok());
    const auto kept = with_layers(*base, LayerChoices(problem->layers.size(), Activations::keep));
    REQUIRE(kept.ok());
    const auto loads = step_loads(*kept);
    REQUIRE(loads.ok());
    problem->loads = *loads;
    Exhaustive all;
    LayerChoices choices;
    try_all(machine, *problem, choices, all);
    const auto plan = plan_tiers(request);
    CAPTURE(i, machine.layers, machine.settings, all.fitting_count);
    REQUIRE(plan.ok() == (all.fitting_count > 0));
    if (!plan.ok()) continue;
    CHECK(plan->step.total_seconds <= (1 + kWorthwhile) * all.least);
    CHECK(plan->step.total_seconds >= all.least * (1 - 1e-9));
    CHECK(plan->bound.seconds <= all.least * (1 + 1e-9));
    CHECK(plan->memory.fits());
  }
}

// Accelerator, engines beside the drives and updates that run into the next step.
TEST_CASE("no simulated step is shorter than its bound on the machine of published results") {
  const std::string samples = SLUICE_SOURCE_DIR "/sample_models/";
  for (const char* method : {"method=csd", "method=host"}) {
    for (const char* pipeline : {"pipeline=nbuffer", "pipeline=serial"}) {
      const auto config = simulate::simulation_config(
          samples + "models/gpt2-0.34b.toml", samples + "platforms/smartssd-a5000.toml",
          std::vector<std::string>{"devices=3", "batch=16", method, pipeline});
      REQUIRE(config.ok());
      const auto base = plan::plan_run(*config);
      REQUIRE(base.ok());
      auto problem = layer_problem(*base, blocks_on_accelerator(0));
      REQUIRE(problem.ok());
      const auto seconds_of = [&](const LayerChoices& choices) {
        const auto run = with_layers(*base, choices);
        REQUIRE(run.ok());
        return simulate::simulate_step(*run);
      };
      LayerChoices choices(problem->layers.size(), Activations::keep);
      const auto kept = with_layers(*base, choices);
      const auto step = seconds_of(choices);
      REQUIRE((kept.ok() && step.ok()));
      const auto loads = step_loads(*kept);
      REQUIRE(loads.ok());
      problem->loads = *loads;
      CHECK(lower_bound(*problem, 0).seconds <= step->total_seconds);
      for (const Activations choice :
           {Activations::recompute, Activations::offload, Activations::offload_inputs}) {
        for (std::size_t l = 1; l + 1 < choices.size(); ++l) {
          choices[l] = choice;
          if (l % 8 != 0) continue;
          const auto other = seconds_of(choices);
          REQUIRE(other.ok());
          CAPTURE(method, pipeline, layers_text(choices));
          CHECK(least_seconds(*problem, choices) <= other->total_seconds);
        }
      }
    }
  }
}

TEST_CASE("with room for everything no activation moves and no layer is computed twice", "[long]") {
  std::mt19937 random(12);
  Case machine = random_case(random);
  for (int i = 0; i < 10; ++i) {
    machine = random_case(random);
    machine.settings.back() = "activations=recompute";  // in place of the cap
    const TierPlan plan = planned(machine);
    CAPTURE(i, machine.settings, plan.step.total_seconds);
    CHECK(settings::value_of(plan.run.config, "activations") == "keep");
  }
  machine.settings.back() = "activations=offload";
  const TierPlan plan = planned(machine);
  CHECK(plan.moved_bytes == 0);
  CHECK(plan.resident_bytes == 0);
  CHECK(settings::value_of(plan.run.config, "activations") == "keep");
  CHECK(plan.stall_seconds == 0);
}

TEST_CASE("a plan keeps to its cap, and more memory makes no step longer", "[long]") {
  Case machine;
  const std::int64_t most = host_peak_bytes(machine, "keep");
  const std::int64_t least = host_peak_bytes(machine, "recompute");
  double before = kForEver;
  for (const int part : {0, 1, 2, 3, 4}) {
    Case capped = machine;
    const std::int64_t cap = least + (most - least) * part / 4;
    capped.settings = {fmt::format("host_memory={}", cap)};
    const TierPlan plan = planned(capped);
    CAPTURE(part, cap, settings::value_of(plan.run.config, "activations"));
    CHECK(plan.memory.uses[0].peak_bytes <= cap);
    CHECK(plan.memory.uses[0].cap_bytes == cap);
    CHECK(plan.step.total_seconds <= before * 1.005);
    CHECK(plan.bound.seconds <= plan.step.total_seconds);
    before = plan.step.total_seconds;
  }
}

TEST_CASE("where nothing fits, the smallest cap that is said is one that does") {
  Case machine;
  machine.settings = {"host_memory=1MiB"};
  const auto refused = plan_tiers(machine.request());
  REQUIRE(!refused.ok());
  CHECK(refused.error().code() == ErrorCode::memory);
  const std::string& message = refused.error().message();
  const std::string before = "the smallest host_memory that would do is ";
  const std::size_t at = message.find(before);
  CAPTURE(message);
  REQUIRE(at != std::string::npos);
  const std::size_t begin = at + before.size();
  machine.settings = {"host_memory=" + message.substr(begin, message.find('.', begin) - begin)};
  CHECK(planned(machine).memory.fits());
}

TEST_CASE("settings are planned with what each is worth, and a held one stays") {
  Case machine;
  machine.settings = {"pipeline=serial", "buffers=1", "activations=recompute"};
  const TierPlan plan = planned(machine);
  CHECK(plan.step.total_seconds < plan.start_seconds);
  for (const PlannedSetting& setting : plan.settings) {
    CAPTURE(setting.key, setting.value, setting.from);
    if (setting.key != "state_cache") {
      CHECK(setting.value == settings::value_of(plan.run.config, setting.key));
    }
    REQUIRE(setting.worth_seconds);
    CHECK(*setting.worth_seconds >= 0);
    CHECK(setting.key != "commit_every");  // only where somebody allows it
    if (!setting.is_changed()) CHECK(*setting.worth_seconds == 0);
  }
  PlanRequest request = machine.request();
  request.held = {"pipeline", "activations"};
  request.commit_every_max = 5;
  const auto held = plan_tiers(request);
  REQUIRE(held.ok());
  CHECK(settings::value_of(held->run.config, "pipeline") == "serial");
  CHECK(settings::value_of(held->run.config, "activations") == "recompute");
  CHECK(std::ranges::count(held->settings, "commit_every", &PlannedSetting::key) == 1);
  CHECK(!check_held_plan({"bufers"}, "--hold").ok());
  CHECK(check_held_plan({"buffers", "activations"}, "--hold").ok());
}

TEST_CASE("a run that clips by subgroup stays so, and no other is planned to", "[long]") {
  Case machine;
  machine.settings = {"overlap=local"};
  CHECK(settings::value_of(planned(machine).run.config, "overlap") == "local");
  machine.settings = {"overlap=off", "commit_every=5"};
  CHECK(settings::value_of(planned(machine).run.config, "overlap") != "local");
}

TEST_CASE("state_cache takes what activations leave, and is said as a number") {
  Case machine;
  machine.rates.drive_read = machine.rates.drive_write = 2e8;
  machine.settings = {fmt::format("host_memory={}", host_peak_bytes(machine, "keep") + (4 << 20))};
  const TierPlan plan = planned(machine);
  CHECK(plan.run.config.offload.state_cache_bytes > 0);
  CHECK(plan.memory.fits());
}

TEST_CASE("a plan that is stopped is the best so far, and says so") {
  const Case machine;
  PlanRequest request = machine.request();
  int asked = 0;
  request.stops = [&asked] { return ++asked > 40; };
  const auto plan = plan_tiers(request);
  REQUIRE(plan.ok());
  CHECK(plan->was_stopped);
  CHECK(!plan->is_exhaustive);
  request.stops = [] { return true; };
  const auto none = plan_tiers(request);
  REQUIRE(!none.ok());
  CHECK(none.error().code() == ErrorCode::cancelled);
}

}  // namespace
}  // namespace sluice::tune
