// In which modes a run ran: what ever stood in for hardware is named, with its steps.

#include "profiler/analyze/run_mode.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::analyze;

namespace {

const std::string kHost = "host · serial · 4 drives · EMULATED CLOCK x12";
const std::string kCsd =
    "csd · nbuffer · 4 devices · EMULATED CLOCK x12, EMULATED CSDs (files, host memory)";
const std::string kReal = "host · nbuffer · 2 drives · real clock";

RunMode mode_of(const std::vector<std::pair<std::int64_t, std::string>>& rows) {
  std::vector<rundb::ModeRow> made;
  for (const auto& [step, line] : rows) made.push_back({.step_id = step, .line = line});
  return run_mode(made);
}

}  // namespace

TEST_CASE("a run in one mode says its line") {
  CHECK(mode_of({{0, kCsd}}).line() == kCsd);
  CHECK(mode_of({{0, kReal}}).stand_ins.empty());
  CHECK(mode_of({{0, kReal}}).method == kReal);
  CHECK(mode_of({}).line().empty());
}

TEST_CASE("what stood in for hardware in some steps is named with them") {
  const RunMode turned = mode_of({{0, kHost}, {40, kCsd}});
  CHECK(turned.method == "csd · nbuffer · 4 devices");
  CHECK(turned.stand_ins ==
        "EMULATED CLOCK x12, EMULATED CSDs (files, host memory) in steps 41 on");
  const RunMode back = mode_of({{0, kCsd}, {10, kHost}, {20, kCsd}, {30, kReal}});
  CHECK(back.method == kReal);
  CHECK(back.stand_ins ==
        "EMULATED CLOCK x12 in steps 1 to 30, EMULATED CSDs (files, host memory) in steps 1 to 10, "
        "21 to 30");
  REQUIRE(back.stretches.size() == 4);
  CHECK(back.stretches[1].first_step == 10);
  CHECK(back.stretches[1].last_step == 19);
  CHECK(back.stretches[3].last_step == -1);
}

TEST_CASE("clipping by subgroup stays named when it is over, and stands in for nothing") {
  const std::string clipped = "clipped by subgroup: other numbers than overlap=off";
  const std::string local = "csd · nbuffer · 4 devices · " + clipped + " · real clock";
  CHECK(mode_of({{0, local}}).other_numbers == std::vector{clipped});
  CHECK(mode_of({{0, local}}).line() == "csd · nbuffer · 4 devices · real clock · " + clipped);
  CHECK(mode_of({{0, local}}).stand_ins.empty());
  const RunMode over = mode_of({{0, kCsd}, {3, local}, {7, kCsd}});
  CHECK(over.line() ==
        "csd · nbuffer · 4 devices · " + clipped +
            " in steps 4 to 7 · EMULATED CLOCK x12 in steps 1 to 3, 8 on, EMULATED CSDs (files, "
            "host memory) in steps 1 to 3, 8 on");
}

TEST_CASE("a software card that XRT drives stands in for hardware, by its name") {
  const std::string mode = "csd · nbuffer · 4 devices · real clock, CSDs by XRT: ";
  CHECK(mode_of({{0, mode + "sluice_software_smartssd_1"}}).stand_ins ==
        "real clock, CSDs by XRT: sluice_software_smartssd_1");
  CHECK(mode_of({{0, mode + "xilinx_u2_gen3x4_xdma_gc_2_202110_1"}}).stand_ins.empty());
}

TEST_CASE("a mode in which no step ran is none, and one that returns goes on") {
  const RunMode undone = mode_of({{0, kHost}, {7, kCsd}, {7, kHost}});
  REQUIRE(undone.stretches.size() == 1);
  CHECK(undone.line() == kHost);
  std::vector<std::pair<std::int64_t, std::string>> many;
  for (std::int64_t i = 0; i < 12; ++i) many.emplace_back(i * 10, i % 2 == 0 ? kReal : kHost);
  CHECK(mode_of(many).stand_ins ==
        "EMULATED CLOCK x12 in steps 11 to 20, 31 to 40, 51 to 60 and 3 more");
}
