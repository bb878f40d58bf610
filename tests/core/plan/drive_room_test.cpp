// What a plan puts on each drive, and whether the drives hold it.

#include "core/plan/drive_room.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/offload/gradient_format.h"
#include "core/plan/run_plan.h"
#include "storage/state/state_store.h"

namespace sluice::plan {
namespace {

std::string sample(const std::string& name) {
  return std::string(SLUICE_SOURCE_DIR) + "/sample_models/" + name + ".toml";
}

RunPlan plan_of(const std::vector<std::string>& settings) {
  const std::string text = "model = '" + sample("models/tiny") + "'\nplatform = '" +
                           sample("platforms/laptop") +
                           "'\ntext = 't'\nsubgroup_elements = 65536\n";
  auto config = settings::parse_run_config(text, "made.toml", settings);
  INFO((config.ok() ? "" : config.error().message()));
  REQUIRE(config.ok());
  auto plan = plan_run(*config);
  INFO((plan.ok() ? "" : plan.error().message()));
  REQUIRE(plan.ok());
  return std::move(*plan);
}

TEST_CASE("each drive holds two versions of its subgroups") {
  const RunPlan plan = plan_of({"devices=2", "device_map=3,1"});
  const auto needs = drive_needs(plan);
  REQUIRE(needs.count() == 2);
  for (const DeviceId device : all_ids<DeviceId>(2)) {
    CHECK(needs[device].state_bytes ==
          state::device_file_bytes(plan.geometry, std::ranges::count(plan.device_map, device)));
    CHECK(needs[device].gradient_bytes > 0);
  }
  CHECK(needs[DeviceId{0}].state_bytes > 2 * needs[DeviceId{1}].state_bytes);
}

TEST_CASE("gradients in memory need no room on a drive") {
  const RunPlan plan = plan_of({"method=host", "gradient_tier=memory"});
  CHECK(drive_needs(plan)[DeviceId{0}].gradient_bytes == 0);
}

TEST_CASE("the first drive that is too small is named with what it would have to hold") {
  RunPlan plan = plan_of({"devices=2"});
  const auto needs = drive_needs(plan);
  const auto need = [&](DeviceId device) {
    return needs[device].state_bytes + needs[device].gradient_bytes;
  };
  plan.platform.devices[0].capacity_bytes = need(DeviceId{0});
  plan.platform.devices[1].capacity_bytes = need(DeviceId{1});
  CHECK(check_capacity(plan).ok());
  plan.platform.devices[1].capacity_bytes -= 1;
  const Status refused = check_capacity(plan);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code() == ErrorCode::config);
  CHECK_THAT(refused.error().message(),
             Catch::Contains(": " + plan.platform.devices[1].name + " holds ") &&
                 Catch::Contains("would take " + format_bytes(need(DeviceId{1}))));
  plan.platform.devices[1].capacity_bytes = 0;  // not stated
  CHECK(check_capacity(plan).ok());
}

TEST_CASE("a live run is told which share is too large, whatever its files are") {
  RunPlan plan = plan_of({"devices=2"});
  const std::vector<std::string> files = {"/no/such/0/state.slc", "/no/such/1/state.slc"};
  CHECK(check_drive_room(plan, files).ok());  // whoever opens them says what is wrong
  plan.platform.devices[1].capacity_bytes = 4096;
  const Status status = check_drive_room(plan, files);
  REQUIRE(!status.ok());
  CHECK(status.error().code() == ErrorCode::config);
  CHECK_THAT(status.error().message(),
             Catch::Contains(plan.platform.devices[1].name) &&
                 Catch::Contains("give it a smaller share with device_map"));
}

}  // namespace
}  // namespace sluice::plan
