// SLUICE_SOFT_XRT is taken whole, or refused by name.

#include "soft/smartssd/settings.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::soft_smartssd;

TEST_CASE("every key is read") {
  const auto settings = parse_settings(
      "devices=4; memory_mib=1024;seed=7;platform=a "
      "b/c.toml;kernel_elements_per_s=1.5e9;sync_mib_per_s=3000;"
      "completion_delay_us=200;hang_ms=0;fault=hang@3;fault=allocation~0.25/device2;");
  REQUIRE(settings.ok());
  CHECK(settings->devices == 4);
  CHECK(settings->memory_mib == 1024);
  CHECK(settings->seed == 7);
  CHECK(settings->platform == "a b/c.toml");
  CHECK(settings->kernel_elements_per_s == 1.5e9);
  CHECK(settings->sync_mib_per_s == 3000);
  CHECK(settings->completion_delay_us == 200);
  CHECK(settings->hang_ms == 0);
  REQUIRE(settings->faults.size() == 2);
  CHECK(settings->faults[0].kind == FaultKind::hang);
  CHECK(settings->faults[0].event == 3);
  CHECK(settings->faults[0].device == -1);
  CHECK(settings->faults[1].kind == FaultKind::allocation);
  CHECK(settings->faults[1].probability == 0.25);
  CHECK(settings->faults[1].device == 2);
  CHECK(parse_settings("").ok());
}

TEST_CASE("what is not known is refused, with the nearest that is") {
  const std::pair<const char*, const char*> cases[] = {
      {"device=1", "did you mean 'devices'"},
      {"fault=hangs@1", "did you mean 'hang'"},
      {"fault=hang", "neither @EVENT nor ~PROBABILITY"},
      {"fault=hang@0", "no number from 1"},
      {"fault=hang~2", "no number from 0 to 1"},
      {"fault=hang@1/device99", "no number from 0 to 15"},
      {"devices=0", "no number from 1 to 16"},
      {"devices=2x", "devices='2x'"},
      {"devices=", "devices=''"},
      {"memory_mib=5000", "no number from 1 to 4096"},
      {"kernel_elements_per_s=nan", "no number"},
      {"seed=1;seed=1", "twice"},
  };
  for (const auto& [text, expected] : cases) {
    const auto settings = parse_settings(text);
    INFO(text);
    REQUIRE_FALSE(settings.ok());
    CHECK(settings.error().code() == ErrorCode::config);
    CHECK_THAT(settings.error().message(), Catch::Contains(expected));
  }
}
