#include "profiler/report/detail/span_stream.h"

#include <algorithm>

#include "tests/profiler/report/made_run.h"

namespace sluice::report::detail {

TEST_CASE("windows give every span once, in order, whatever their size") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 20});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  for (const std::int64_t window : {1, 7, 50, 1'000'000}) {
    SpanStream stream = require_ok(SpanStream::open(*reader, {}, window));
    std::vector<std::int64_t> ids;
    std::vector<rundb::SpanRow> spans;
    TimeNs ts = 0;
    std::size_t largest = 0;
    while (require_ok(stream.next(spans))) {
      largest = std::max(largest, spans.size());
      for (const rundb::SpanRow& span : spans) {
        CHECK(span.ts >= ts);
        ts = span.ts;
        ids.push_back(span.id);
      }
    }
    std::ranges::sort(ids);
    CHECK(ids.size() == 180);
    CHECK(std::ranges::adjacent_find(ids) == ids.end());
    CHECK(stream.share_done() == 1);
    if (window == 1) CHECK(largest < 20);
  }
}

TEST_CASE("a database without spans ends at once") {
  const rundb::TempFolder folder;
  write_made_run(folder.file("run.db"), {.has_spans = false});
  const auto reader = require_ok(rundb::Reader::open(folder.file("run.db")));
  SpanStream stream = require_ok(SpanStream::open(*reader, {}));
  std::vector<rundb::SpanRow> spans;
  CHECK(!require_ok(stream.next(spans)));
}

}  // namespace sluice::report::detail
