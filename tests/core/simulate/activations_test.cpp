// What offloading activations costs a step in simulated time, as the drive's rate falls below what
// forward makes.

#include <numeric>

#include "core/activation/activation_plan.h"
#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

// A GPT of 8 layers; the state moves behind backward, so that the drive has the activations alone
// before it.
plan::RunPlan plan_with(double drive_bytes_per_s, const std::vector<std::string>& settings,
                        const std::string& host_line = "") {
  const std::string rate = fmt::format("\"{} B/s\"", static_cast<std::int64_t>(drive_bytes_per_s));
  const std::string text =
      "name = 'one drive'\n[[link]]\nname = 'host'\nread = '1 TB/s'\nwrite = '1 TB/s'\nduplex = "
      "'full'\n"
      "[host]\nmemory = '64 GB'\nadamw = '1 Gelem/s'\nstage = '50 Gelem/s'\n" +
      host_line +
      "[compute]\nmatmul = '1 TFLOP/s'\n[[device]]\nname = 'drive'\nvia = ['host']\n"
      "[device.drive]\nduplex = 'full'\nread = " +
      rate + "\nwrite = " + rate + "\n";
  const auto platform = platform::parse_platform(text, "drive.toml");
  INFO((platform.ok() ? std::string() : platform.error().message()));
  REQUIRE(platform.ok());
  std::vector<std::string> all = {"method=host",
                                  "pipeline=serial",
                                  "devices=1",
                                  "batch=8",
                                  "sequence=256",
                                  "prefetch=false",
                                  "gradient_tier=memory",
                                  "subgroup_elements=4000000"};
  all.insert(all.end(), settings.begin(), settings.end());
  const auto config = settings::parse_run_config(
      "name = 'stall'\nmodel = 'm'\nplatform = 'p'\ntext = 'none'\n", "stall.toml", all);
  INFO((config.ok() ? std::string() : config.error().message()));
  REQUIRE(config.ok());
  const auto plan = plan::plan_run(*config, {"eight", 8, 512, 8, 256, 256}, *platform);
  INFO((plan.ok() ? std::string() : plan.error().message()));
  REQUIRE(plan.ok());
  return *plan;
}

// Forward and backward, of which the update is no part.
double pass_seconds(const SimulatedStep& step) {
  return step.seconds[static_cast<std::size_t>(Phase::forward)] +
         step.seconds[static_cast<std::size_t>(Phase::backward)];
}

double waited_seconds(const SimulatedStep& step) {
  return std::accumulate(step.activation_wait_seconds.begin(), step.activation_wait_seconds.end(),
                         0.0);
}

double written_bytes(const SimulatedStep& step) {
  double sum = 0;
  for (const LinkUse& link : step.links) {
    if (!link.name.ends_with(".drive")) continue;
    for (const Phase phase : {Phase::forward, Phase::backward}) {
      const auto& moved = link.size_bytes[static_cast<std::size_t>(phase)];
      sum += static_cast<double>(moved[static_cast<std::size_t>(platform::Direction::write)]);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("activations leave beside forward while the drive keeps up, and hold it up below that") {
  const plan::RunPlan kept = plan_with(1e9, {"activations=keep"});
  const SimulatedStep plain = simulated(kept);
  CHECK(written_bytes(plain) == 0);
  const plan::RunPlan offloaded = plan_with(1e9, {"activations=offload"});
  const auto all_bytes = static_cast<double>(offloaded.activations.step_bytes());
  // What forward makes, in the time that it takes.
  const double needed = all_bytes / plain.seconds[static_cast<std::size_t>(Phase::forward)];
  const auto stall = [&](double share) {
    const SimulatedStep step = simulated(plan_with(share * needed, {"activations=offload"}));
    INFO(share << " times the bandwidth that is needed");
    CHECK(written_bytes(step) > 0.9 * all_bytes);
    CHECK(written_bytes(step) <= all_bytes);
    // What the counter says is all that forward and backward take longer.
    const double waited = waited_seconds(step);
    CHECK(pass_seconds(step) - waited == Approx(pass_seconds(plain)).epsilon(1e-6));
    return waited / pass_seconds(plain);
  };
  CHECK(stall(1.25) <= 0.01);
  CHECK(stall(0.6) > 0.1);
  CHECK(stall(0.3) > stall(0.6));
}

TEST_CASE("with room for everything nothing moves, and a step takes as long as with keep") {
  const SimulatedStep plain = simulated(plan_with(1e9, {"activations=keep"}));
  const SimulatedStep step =
      simulated(plan_with(1e9, {"activations=offload", "activation_buffer=1GiB"}));
  CHECK(written_bytes(step) == 0);
  CHECK(waited_seconds(step) == 0);
  CHECK(pass_seconds(step) == pass_seconds(plain));
}

TEST_CASE("checksums are charged at their own rate, or at four bytes an element of stage") {
  const auto host_seconds = [](const std::string& host_line) {
    const plan::RunPlan plan = plan_with(1e12, {"activations=offload"}, host_line);
    const SimulatedStep step = simulated(plan);
    const auto host = std::ranges::find(step.engines, "host", &EngineUse::name);
    REQUIRE(host != step.engines.end());
    return host->busy_seconds[static_cast<std::size_t>(Phase::forward)];
  };
  const auto bytes =
      static_cast<double>(plan_with(1e12, {"activations=offload"}).activations.step_bytes());
  // The last layers' sums end in backward.
  CHECK(host_seconds("") == Approx(bytes / 200e9).epsilon(0.3));
  CHECK(host_seconds("checksum = '20 GB/s'\n") == Approx(10 * host_seconds("")).epsilon(0.1));
}
