// overlap=exact in simulated steps: the update runs beside backward, and moves the same bytes.

#include "tests/core/simulate/sample_plan.h"

using namespace sluice;
using namespace sluice::simulate;

namespace {

SimulatedStep step_with(std::vector<std::string> settings, const std::string& overlap) {
  settings.insert(settings.end(), {"devices=10", "overlap=" + overlap});
  return simulated(sample_plan("gpt2-4.0b", "smartssd-a5000", settings));
}

double of(const SimulatedStep& step, Phase phase) {
  return step.seconds[static_cast<std::size_t>(phase)];
}

}  // namespace

TEST_CASE("where backward is longer than the update, nine tenths of the update hide in it") {
  const std::vector<std::string> settings = {"batch=16", "wire=native",
                                             "subgroup_elements=40000000"};
  const SimulatedStep off = step_with(settings, "off");
  const SimulatedStep exact = step_with(settings, "exact");
  REQUIRE(of(off, Phase::backward) > of(off, Phase::update));
  // Forward waits for no parameters where they are up already, so it shows its whole time.
  const double computed = of(exact, Phase::forward) + of(off, Phase::backward);
  CHECK((exact.total_seconds - computed) / of(off, Phase::update) < 0.1);
}

TEST_CASE("an update beside backward moves the bytes of one behind it") {
  for (const std::string pipeline : {"serial", "handover", "nbuffer"}) {
    for (const std::string method : {"host", "csd"}) {
      const std::vector<std::string> settings = {"pipeline=" + pipeline, "method=" + method,
                                                 "batch=16"};
      INFO(pipeline << " " << method);
      const SimulatedStep off = step_with(settings, "off");
      const SimulatedStep exact = step_with(settings, "exact");
      CHECK(exact.total_seconds < off.total_seconds);
      if (pipeline == "nbuffer") continue;  // no two steps of it begin with the same left over
      for (const LinkUse& link : off.links) {
        INFO(link.name);
        CHECK(moved_bytes(exact, link.name) == moved_bytes(off, link.name));
      }
    }
  }
}
