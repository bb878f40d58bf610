// A platform whose rates are wrong is fitted to steps that were simulated on the right one.

#include "core/tune/platform_fit.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/plan/run_plan.h"
#include "core/simulate/simulation.h"
#include "core/tune/detail/fit_simulation.h"
#include "core/tune/recorded_run.h"

namespace sluice::tune {
namespace {

using platform::Direction;

const std::string kSamples = SLUICE_SOURCE_DIR "/sample_models";

// What is wrong with the file: `owner` is a link or an engine of it, or "drive" for every drive.
struct Wrong {
  std::string owner;
  std::string key;
  double factor;
};

bool is_meant(const std::string& name, const std::string& owner) {
  return name == owner || name.ends_with("." + owner);
}

platform::Platform with_wrong_rates(platform::Platform platform, const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    const bool is_link = wrong.key == "read" || wrong.key == "write";
    int changed = 0;
    for (platform::Link& link : platform.links) {
      if (!is_link || !is_meant(link.name, wrong.owner)) continue;
      detail::scale_link(link, wrong.key == "read" ? Direction::read : Direction::write,
                         wrong.factor);
      ++changed;
    }
    for (platform::Engine& engine : platform.engines) {
      if (is_link || !is_meant(engine.name, wrong.owner)) continue;
      engine.rate.at(wrong.key) *= wrong.factor;
      ++changed;
    }
    INFO(wrong.owner << " " << wrong.key);
    REQUIRE(changed > 0);
  }
  return platform;
}

struct FitCase {
  std::string model;
  std::string platform;
  std::vector<std::string> settings;
  std::vector<Wrong> wrong;
  std::vector<std::pair<std::string, std::string>> recovered;  // owner and key, of the first device
};

struct Truth {
  settings::RunConfig config;
  model::ModelShape shape;
  platform::Platform platform;
};

Truth truth_of(const FitCase& of) {
  const std::string model = kSamples + "/models/" + of.model + ".toml";
  const std::string platform = kSamples + "/platforms/" + of.platform + ".toml";
  Truth truth;
  truth.config = simulate::simulation_config(model, platform, of.settings).value();
  truth.shape = model::load_model_shape(model).value();
  truth.platform = platform::load_platform(platform).value();
  return truth;
}

RecordedSteps recorded_on(const Truth& truth) {
  const plan::RunPlan plan = plan::plan_run(truth.config, truth.shape, truth.platform).value();
  return detail::simulate_charged(plan).value().times;
}

double worst_error(const PlatformFit& fit) {
  double worst = std::abs(fit.step.error_after());
  for (const PhaseFit& phase : fit.phases) {
    worst = std::max(worst, std::abs(phase.error_after()));
  }
  return worst;
}

double rate_of(const platform::Platform& platform, const std::string& owner,
               const std::string& key) {
  for (const platform::Link& link : platform.links) {
    if (link.name == owner && key == "read") return link.read_bytes_per_s;
    if (link.name == owner && key == "write") return link.write_bytes_per_s;
  }
  for (const platform::Engine& engine : platform.engines) {
    if (engine.name == owner && engine.rate.contains(key)) return engine.rate.at(key);
  }
  FAIL("no rate " << owner << " " << key);
  return 0;
}

TEST_CASE("phases are within 3 % after the fit, and the rates that the steps show are found",
          "[long]") {
  const auto of = GENERATE(
      // Both of a device's links too fast: which of them bounds a read is not to be seen, nor what
      // each direction gives alone, since drives are read and written all the time.
      FitCase{"gpt2-4.0b",
              "smartssd-a5000",
              {"devices=4"},
              {{"drive", "read", 2},
               {"drive", "write", 2},
               {"internal", "read", 2},
               {"internal", "write", 2},
               {"engine", "adamw", 0.67},
               {"compute", "matmul", 0.7}},
              {{"csd0.engine", "adamw"}, {"compute", "matmul"}}},
      FitCase{"gpt2-4.0b",
              "smartssd-a5000",
              {"devices=10"},
              {{"drive", "read", 0.5},
               {"internal", "read", 1.5},
               {"host", "stage", 2},
               {"compute", "matmul", 0.7}},
              {{"csd0.drive", "read"}, {"host", "stage"}, {"compute", "matmul"}}},
      FitCase{"gpt2-4.0b",
              "smartssd-a5000",
              {"devices=4", "density=0.01"},
              {{"internal", "read", 2}, {"internal", "write", 2}, {"compute", "compress", 0.7}},
              {{"compute", "compress"}}},
      FitCase{"gpt2-1.7b",
              "smartssd-a5000",
              {"devices=2", "method=host"},
              {{"drive", "read", 2},
               {"drive", "write", 2},
               {"host", "adamw", 0.67},
               {"compute", "matmul", 0.7}},
              {{"host", "adamw"}, {"compute", "matmul"}}},
      // The link that ten drives share, not the drives.
      FitCase{"gpt2-1.7b",
              "smartssd-a5000",
              {"devices=10", "method=host"},
              {{"host", "read", 2}, {"host", "write", 2}},
              {{"host", "read"}, {"host", "write"}}},
      FitCase{"gpt2-1.7b",
              "smartssd-a5000",
              {"devices=4", "pipeline=serial"},
              {{"drive", "read", 2},
               {"drive", "write", 0.5},
               {"internal", "read", 2},
               {"internal", "write", 0.5}},
              {{"csd0.drive", "read"}, {"csd0.drive", "write"}, {"csd0.internal", "write"}}},
      FitCase{"gpt2-1.7b",
              "smartssd-a5000",
              {"devices=1", "method=host", "pipeline=handover"},
              {{"drive", "read", 2}, {"host", "adamw", 0.67}},
              {{"csd0.drive", "read"}, {"csd0.drive", "write"}, {"host", "adamw"}}},
      FitCase{"tiny",
              "laptop",
              {"devices=4", "batch=8", "subgroup_elements=65536"},
              {{"drive", "read", 2},
               {"drive", "write", 2},
               {"internal", "read", 2},
               {"internal", "write", 2},
               {"compute", "matmul", 0.7}},
              {{"csd0.drive", "read"}, {"compute", "matmul"}}});
  CAPTURE(of.model, of.settings);
  const Truth truth = truth_of(of);
  const platform::Platform wrong = with_wrong_rates(truth.platform, of.wrong);
  const auto fit = fit_platform(truth.config, truth.shape, wrong, recorded_on(truth));
  REQUIRE(fit.ok());
  CHECK(worst_error(*fit) < 0.03);
  for (const auto& [owner, key] : of.recovered) {
    CAPTURE(owner, key);
    CHECK(rate_of(fit->platform, owner, key) ==
          Approx(rate_of(truth.platform, owner, key)).epsilon(0.06));
  }
}

TEST_CASE("a platform that is right stays as it is") {
  const FitCase of{"gpt2-1.7b", "smartssd-a5000", {"devices=3"}, {}, {}};
  const Truth truth = truth_of(of);
  const PlatformFit fit =
      fit_platform(truth.config, truth.shape, truth.platform, recorded_on(truth)).value();
  for (const FittedRate& rate : fit.rates) CHECK(rate.after == Approx(rate.before).epsilon(1e-3));
  CHECK(worst_error(fit) < 1e-3);
  CHECK(fit.step_count == 1);
}

TEST_CASE("one slow drive among equals is found, and unused devices are as the used ones") {
  const FitCase of{
      "gpt2-1.7b", "smartssd-a5000", {"devices=3", "method=host", "pipeline=serial"}, {}, {}};
  Truth truth = truth_of(of);
  const platform::Platform file = with_wrong_rates(truth.platform, {{"host", "adamw", 2}});
  for (const Direction direction : {Direction::read, Direction::write}) {
    const auto drive = platform::index_of(truth.platform.devices[1].host_route.back());
    detail::scale_link(truth.platform.links[static_cast<std::size_t>(drive)], direction, 0.5);
  }
  const PlatformFit fit = fit_platform(truth.config, truth.shape, file, recorded_on(truth)).value();
  CHECK(rate_of(fit.platform, "csd1.drive", "read") == Approx(1.385e9).epsilon(0.03));
  CHECK(rate_of(fit.platform, "csd0.drive", "read") == Approx(2.77e9).epsilon(0.03));
  CHECK(rate_of(fit.platform, "csd9.drive", "read") < 2.77e9);
  CHECK(rate_of(fit.platform, "host", "adamw") == Approx(1.1e9).epsilon(0.01));
  CHECK(worst_error(fit) < 0.03);
}

TEST_CASE("products and values handled one by one are told apart by the layers") {
  const FitCase of{"tiny", "laptop", {"devices=1", "batch=8", "subgroup_elements=65536"}, {}, {}};
  Truth truth = truth_of(of);
  const auto compute = static_cast<std::size_t>(platform::index_of(truth.platform.compute_engine));
  truth.platform.engines[compute].rate["elementwise"] = 1e9;
  const platform::Platform wrong = with_wrong_rates(
      truth.platform, {{"compute", "matmul", 0.7}, {"compute", "elementwise", 1.6}});
  const PlatformFit fit =
      fit_platform(truth.config, truth.shape, wrong, recorded_on(truth)).value();
  CHECK(rate_of(fit.platform, "compute", "elementwise") == Approx(1e9).epsilon(0.01));
  CHECK(rate_of(fit.platform, "compute", "matmul") == Approx(420e9).epsilon(0.01));
}

TEST_CASE("kernels are not taken for slower because transfers took of their processor") {
  const FitCase of{"gpt2-124m",
                   "laptop",
                   {"devices=4", "pipeline=nbuffer", "subgroup_elements=2621440"},
                   {},
                   {}};
  Truth truth = truth_of(of);
  // Slow enough for transfers to run beside all of forward and backward.
  truth.platform =
      with_wrong_rates(truth.platform, {{"drive", "read", 0.05}, {"drive", "write", 0.05}});
  const auto compute = static_cast<std::size_t>(platform::index_of(truth.platform.compute_engine));
  truth.platform.engines[compute].processor = truth.platform.host_engine;
  for (platform::Link& link : truth.platform.links) {
    if (link.name.ends_with(".drive")) link.processor_bytes_per_s = 4 * link.read_bytes_per_s;
  }
  const RecordedSteps recorded = recorded_on(truth);
  Truth without = truth;
  for (platform::Link& link : without.platform.links) link.processor_bytes_per_s = 0;
  const double longer = phase_seconds(recorded)[0][1] / phase_seconds(recorded_on(without))[0][1];
  CHECK(longer > 1.05);  // there is something to be mistaken

  const platform::Platform wrong = with_wrong_rates(truth.platform, {{"compute", "matmul", 0.7}});
  const PlatformFit fit = fit_platform(truth.config, truth.shape, wrong, recorded).value();
  CHECK(rate_of(fit.platform, "compute", "matmul") ==
        Approx(rate_of(truth.platform, "compute", "matmul")).epsilon(0.03));
  CHECK(worst_error(fit) < 0.03);
}

TEST_CASE("steps without operations are refused") {
  const FitCase of{"tiny", "laptop", {"devices=1"}, {}, {}};
  const Truth truth = truth_of(of);
  RecordedSteps steps;
  steps.steps = {{0, 100}};
  const auto fit = fit_platform(truth.config, truth.shape, truth.platform, steps);
  REQUIRE_FALSE(fit.ok());
  CHECK(fit.error().code() == ErrorCode::config);
}

OperationTimes kernel(TimeNs start_ns, TimeNs end_ns) {
  OperationTimes times;
  times.start_ns = start_ns;
  times.end_ns = end_ns;
  return times;
}

TEST_CASE("kernels in turn take from the end of the one before, those at once share each moment") {
  const std::int64_t s = 1'000'000'000;
  // The second waits for the first; the third comes when nothing runs.
  const std::vector<OperationTimes> kernels = {kernel(0, 4 * s), kernel(s, 6 * s),
                                               kernel(8 * s, 9 * s)};
  CHECK(own_seconds(kernels, KernelOrder::in_turn) == std::vector<double>{4, 2, 1});
  CHECK(own_seconds(kernels, KernelOrder::in_turn, 2) == std::vector<double>{4, 5, 1});
  CHECK(own_seconds(kernels, KernelOrder::at_once) == std::vector<double>{2.5, 3.5, 1});
}

TEST_CASE("the middle half of the steps keeps its operations") {
  RecordedSteps steps;
  for (const TimeNs dur_ns : {100, 10, 11, 12, 1, 13, 90, 9}) {
    const TimeNs start_ns = 1000 * std::ssize(steps.steps);
    steps.steps.push_back({start_ns, start_ns + dur_ns});
    steps.operations.push_back(kernel(start_ns, start_ns + dur_ns));
  }
  const RecordedSteps middle = middle_half(steps);
  REQUIRE(middle.steps.size() == 4);
  CHECK(middle.operations.size() == 4);
  CHECK(middle.steps.front().end_ns == 1010);
  CHECK(middle.steps.back().end_ns == 5013);
  steps.steps.resize(3);
  CHECK(middle_half(steps).steps.size() == 2);
}

TEST_CASE("time with traffic both ways is kept apart, and the bytes with it") {
  OperationTimes read = kernel(0, 4'000'000'000);
  read.stage = stages::Stage::state_read;
  read.device = DeviceId{0};
  read.size_bytes = 400;
  OperationTimes write = read;
  write.direction = platform::Direction::write;
  write.stage = stages::Stage::state_write;
  write.start_ns = 3'000'000'000;
  write.end_ns = 5'000'000'000;
  const RecordedSteps steps{{{0, 5'000'000'000}}, {read, write}, KernelOrder::in_turn};
  const auto uses = transfer_uses(steps);
  const TransferUse alone = uses.at({DeviceId{0}, stages::Stage::state_read, Traffic::one_way});
  CHECK(alone.busy_seconds == Approx(3));
  CHECK(alone.size_bytes == Approx(300));
  const TransferUse both = uses.at({DeviceId{0}, stages::Stage::state_write, Traffic::both_ways});
  CHECK(both.busy_seconds == Approx(1));
  CHECK(both.size_bytes == Approx(200));
}

}  // namespace
}  // namespace sluice::tune
