#include "profiler/report/run_part.h"

#include "tests/profiler/report/made_run.h"

namespace sluice::report {

TEST_CASE("a part has what was under way in it, and what touches it only at an end has not") {
  const RunPart part{.first_step_id = 1, .last_step_id = 2, .begin = 100, .end = 300};
  CHECK(part.has_span(100, 10));
  CHECK(part.has_span(90, 11));
  CHECK(!part.has_span(90, 10));
  CHECK(part.has_span(299, 50));
  CHECK(!part.has_span(300, 50));
  CHECK(part.has_span(0, 1000));
  CHECK(part.has_span(100, 0));  // without length: where it begins
  CHECK(!part.has_span(300, 0));
  CHECK(part.has_instant(100));
  CHECK(!part.has_instant(300));
  CHECK(RunPart{}.has_span(-5, 0));
  CHECK(RunPart{}.has_instant(std::numeric_limits<TimeNs>::max()));
}

TEST_CASE("steps are counted from 1, and a run that has them not all says which it has") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 4});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  const RunPart part = require_ok(part_of_steps(*reader, 2, 3));
  CHECK(part.first_step_id == 1);
  CHECK(part.last_step_id == 2);
  CHECK(part.begin == 100 * kMs);
  CHECK(part.end == 300 * kMs);
  const RunPart last = require_ok(part_of_last_steps(*reader, 1));
  CHECK(last.first_step_id == 3);
  CHECK(last.end == 400 * kMs);
  CHECK(require_ok(part_of_last_steps(*reader, 99)).first_step_id == 0);
  for (const auto& [first, end] : {std::pair(0, 2), std::pair(3, 5), std::pair(3, 2)}) {
    const auto refused = part_of_steps(*reader, first, end);
    REQUIRE(!refused.ok());
    CHECK(refused.error().message().find("it has 1 to 4") != std::string::npos);
  }
}

}  // namespace sluice::report
