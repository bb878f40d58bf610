#include "cli/sweep.h"

#include <catch2/catch.hpp>

using namespace sluice;
using namespace sluice::cli;

TEST_CASE("a sweep is a range with both ends, or a list as it stands") {
  const Result<Sweep> range = parse_sweep("devices=-1..2");
  REQUIRE(range.ok());
  CHECK(range->key == "devices");
  CHECK(range->values == std::vector<std::string>{"-1", "0", "1", "2"});
  const Result<Sweep> list = parse_sweep("density=1,0.1, x=y");
  REQUIRE(list.ok());
  CHECK(list->values == std::vector<std::string>{"1", "0.1", " x=y"});
  CHECK(parse_sweep_values("7..7").ok());
  CHECK(parse_sweep_values("1..10000")->size() == 10'000);
}

TEST_CASE("what is no sweep is refused with what to write") {
  const auto [text, words] = GENERATE(table<std::string, std::string>({
      {"devices", "there is no key"},
      {"=1..3", "there is no key"},
      {"devices=", "a value is empty"},
      {"devices=1,,2", "a value is empty"},
      {"devices=1..x", "whole numbers"},
      {"devices=..", "whole numbers"},
      {"devices=1..2..3", "whole numbers"},
      {"devices=99999999999999999999..1", "whole numbers"},
      {"devices=3..1", "backwards"},
      {"devices=1..10001", "too long"},
      // The ends are farther apart than a number of 64 bits with a sign can say.
      {"devices=-9223372036854775808..9223372036854775807", "too long"},
  }));
  const Result<Sweep> sweep = parse_sweep(text);
  INFO(text);
  REQUIRE_FALSE(sweep.ok());
  CHECK(sweep.error().code() == ErrorCode::config);
  CHECK_THAT(sweep.error().message(), Catch::Contains(words));
  CHECK_THAT(sweep.error().message(), Catch::Contains("--sweep"));
}

TEST_CASE("a sweep's table, CSV and JSON have the same figures") {
  const Sweep sweep{"devices", {"1", "2"}};
  std::vector<SweepRow> rows(2);
  rows[0].value = "1";
  rows[0].step.seconds = {1, 2, 5};
  rows[0].step.total_seconds = 8;
  rows[1].value = "2";
  rows[1].step.seconds = {1, 2, 1};
  rows[1].step.total_seconds = 4;
  const std::string table = sweep_table(sweep, "gpt2 on a machine", rows);
  CHECK_THAT(table, Catch::StartsWith("SIMULATED: gpt2 on a machine"));
  CHECK_THAT(table, Catch::Contains("2.00\n"));  // twice as fast as the first
  CHECK(sweep_csv(sweep, rows) ==
        "devices,forward_s,backward_s,update_s,total_s\n1,1,2,5,8\n2,1,2,1,4\n");
  const answers::Json json = answers::sweep_json(sweep.key, rows);
  CHECK(json["rows"][1]["seconds"]["update"] == 1.0);
  CHECK(json["rows"][1]["value"] == "2");
}
