// Each wait, event and stream guard of the compute device, left out in turn (core/model/torch/
// planted.h), is found by the software accelerator, which says whose order is missing. None of it
// depends on time, but that a device goes within half a second.

#include <catch2/catch.hpp>

#include "core/model/torch/planted.h"
#include "tests/core/model/torch/device_step.h"

namespace sluice::model {
namespace {

const ModelShape kSmall{"small", 3, 48, 3, 24, 97};
const ModelOptions kOptions{.batch = 3,
                            .sequence = 20,
                            .micro_step_count = 1,
                            .activations = Activations::keep,
                            .compute = ParameterKind::bf16,
                            .thread_count = 2};

// One that is under way for half a second, so that the device goes before it ends.
constexpr const char* kSlowIn = "delay_us=200;in_rate=1e5";
constexpr const char* kQuickIn = "delay_us=200;in_rate=1e7";

// What two steps, or none, and the end of the device say: the first error that came back, or was
// kept.
std::string said_of(std::string_view mistake, std::string_view device = kQuickIn) {
  planted_mistake = mistake;
  const ModelFactory factory = soft_factory(std::string(device));
  std::string said;
  {
    DeviceStep step(kSmall, kOptions, factory, 4);
    const std::vector<std::uint64_t> seeds =
        device == kQuickIn ? std::vector<std::uint64_t>{7, 8} : std::vector<std::uint64_t>{};
    for (const std::uint64_t seed : seeds) {
      const Result<StepNumbers> numbers = step.run({Batch(3, 20, 97, seed)}, 1.0);
      if (!numbers.ok() && said.empty()) said = numbers.error().message();
    }
    // Something is under way as the device goes.
    if (said.empty()) {
      const std::int64_t layer_bytes = step.model().layout().layer(LayerId{1}).count * 2;
      const Status started =
          step.device().layer_in(LayerId{1}, {0, layer_bytes}, [](const Status&) {});
      if (!started.ok()) said = started.error().message();
    }
  }
  planted_mistake = {};
  const std::string kept = kept_error();
  return said.empty() ? kept : said;
}

TEST_CASE("without a mistake nothing is found") { CHECK(said_of("") == ""); }

TEST_CASE("each wait, event and stream guard that is left out is found, by name") {
  struct Mistake {
    const char* name;
    const char* says;
  };
  const Mistake mistake = GENERATE(
      Mistake{"no event of in", "'in'"}, Mistake{"no event of compute", "'compute'"},
      Mistake{"no event of out", "'out'"}, Mistake{"no stream guard of in", "'default'"},
      Mistake{"no stream guard of compute", "'default'"},
      Mistake{"no stream guard of out", "'default'"}, Mistake{"no wait for memory", "'compute'"});
  INFO(mistake.name);
  CHECK_THAT(said_of(mistake.name), Catch::Contains(mistake.says));
}

TEST_CASE("a device that goes while a layer is on its way to it is found, by name") {
  CHECK(said_of("", kSlowIn) == "");
  CHECK_THAT(said_of("no wait at the end", kSlowIn), Catch::Contains("'in'"));
}

}  // namespace
}  // namespace sluice::model
