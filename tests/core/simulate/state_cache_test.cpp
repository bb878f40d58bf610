// state_cache and commit_every in simulated steps: the mean of the steps from one commit to the
// next, with the bytes that a run moves.

#include <cmath>

#include "core/plan/run_plan.h"
#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

constexpr const char* kCachedModel = "gpt2-0.34b";
constexpr const char* kCachedPlatform = "smartssd-a5000";

std::string refusal(const std::vector<std::string>& settings) {
  const auto step = simulate_step(sample_plan(kCachedModel, kCachedPlatform, settings));
  REQUIRE_FALSE(step.ok());
  return step.error().message();
}

}  // namespace

TEST_CASE("a simulated step moves the state that does not stay, and all of it to commit") {
  for (const std::string pipeline : {"serial", "handover", "nbuffer"}) {
    for (const int commit_every : {1, 5}) {
      for (const std::string cache : {"0", "500MB", "auto"}) {
        const plan::RunPlan plan = sample_plan(
            kCachedModel, kCachedPlatform,
            {"method=csd", "pipeline=" + pipeline, "devices=2", "subgroup_elements=10000000",
             "state_cache=" + cache, fmt::format("commit_every={}", commit_every)});
        INFO(pipeline << " every " << commit_every << " " << cache);
        const auto all = static_cast<double>(plan.layout.parameter_count);
        // 120 MB a subgroup: four on each of two devices.
        const double kept = cache == "0" ? 0 : cache == "auto" ? all : 8 * 10e6;
        const auto [read, written] = moved_bytes(simulated(plan), ".internal");
        // No two steps of nbuffer begin with the same left over; means are truncated by phase.
        const double margin = pipeline == "nbuffer" ? 0.02 * 16 * all : 16;
        CHECK(std::abs(read - (12 * (all - kept) + 4 * all)) < margin);
        CHECK(std::abs(written - (12 * (all - kept) + 12 * kept / commit_every)) < margin);
      }
    }
  }
}

TEST_CASE("less to move and fewer commits do not make a simulated step longer") {
  const auto seconds = [](const std::vector<std::string>& settings) {
    std::vector<std::string> all = {"method=host", "pipeline=serial", "devices=2",
                                    "subgroup_elements=10000000", "host_memory=64GB"};
    all.insert(all.end(), settings.begin(), settings.end());
    return simulated(sample_plan(kCachedModel, kCachedPlatform, all)).total_seconds;
  };
  const double plain = seconds({});
  const double half = seconds({"state_cache=2GB", "commit_every=10"});
  const double whole = seconds({"state_cache=auto", "commit_every=10"});
  CHECK(half < plain);
  CHECK(whole < half);
}

TEST_CASE("a simulated machine refuses more than it has") {
  CHECK_THAT(refusal({"method=csd", "devices=2", "buffers=1", "subgroup_elements=10000000",
                      "device_memory=400MB", "state_cache=500MB"}),
             Catch::Contains("the largest state_cache that fits is"));
}
