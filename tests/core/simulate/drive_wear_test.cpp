#include "core/simulate/drive_wear.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

namespace sluice::simulate {
namespace {

constexpr std::int64_t kTerabyte = 1'000'000'000'000;

// A sample machine whose drives bear that much each.
plan::RunPlan plan_with(std::int64_t endurance_bytes, const std::string& platform,
                        const std::vector<std::string>& settings) {
  plan::RunPlan plan = sample_plan("gpt2-4.0b", platform, settings);
  for (platform::Device& device : plan.platform.devices) device.endurance_bytes = endurance_bytes;
  return plan;
}

}  // namespace

// At 12.1 GB/s for half of the time, SSDTrain's case, for which it says more than two years.
DriveWear half_the_time(std::int64_t endurance_bytes) {
  return {"raid", endurance_bytes, 5 * 12'100'000'000, 10};
}

TEST_CASE("four drives of 600 TBW last 2.7 years by SSDTrain's factors, 11.5 days without the 86") {
  // 2.5: the rating is for a write amplification of 2.5. 86: data is kept for a day instead of
  // three years.
  const std::int64_t rated = 4 * 600 * kTerabyte * 5 / 2;
  const DriveWear wear = half_the_time(86 * rated);
  CHECK(wear.endurance_bytes == 516'000 * kTerabyte);
  CHECK(wear.life_steps() == Approx(516e15 / 60.5e9));
  CHECK(wear.life_seconds() / kSecondsOfYear == Approx(2.7).margin(0.01));
  CHECK(half_the_time(rated).life_seconds() / (24 * 3600) == Approx(11.5).margin(0.05));
}

TEST_CASE("a drive is worn by what host and update engine write to it") {
  for (const char* method : {"method=host", "method=csd"}) {
    INFO(method);
    const plan::RunPlan plan =
        plan_with(600 * kTerabyte, "smartssd-a5000", {"devices=4", "pipeline=serial", method});
    const SimulatedStep step = simulated(plan);
    const std::vector<DriveWear> wear = drive_wear(plan.platform, step);
    REQUIRE(wear.size() == 4);
    std::int64_t written = 0;
    for (const DriveWear& drive : wear) {
      CHECK(drive.step_seconds == step.total_seconds);
      CHECK(drive.life_steps() ==
            static_cast<double>(drive.endurance_bytes) / static_cast<double>(drive.written_bytes));
      written += drive.written_bytes;
    }
    // Gradients, and a new version of the state: 4 + 12 bytes a parameter.
    CHECK(written == 16 * plan.layout.parameter_count);
    CHECK(wear[3].drive == "csd3");
  }
}

TEST_CASE("only drives that say what they bear have a row") {
  plan::RunPlan plan = plan_with(0, "smartssd-a5000", {"devices=3"});
  const SimulatedStep step = simulated(plan);
  CHECK(drive_wear(plan.platform, step).empty());
  plan.platform.devices[1].endurance_bytes = kTerabyte;
  const std::vector<DriveWear> wear = drive_wear(plan.platform, step);
  REQUIRE(wear.size() == 1);
  CHECK(wear[0].drive == "csd1");
}

TEST_CASE("a drive to which nothing is written lasts for ever") {
  CHECK(std::isinf(DriveWear{"csd0", kTerabyte, 0, 10}.life_seconds()));
}

}  // namespace sluice::simulate
