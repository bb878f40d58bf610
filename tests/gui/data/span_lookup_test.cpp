#include "gui/data/span_lookup.h"

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

struct Run {
  TempFolder folder;
  std::unique_ptr<rundb::Reader> reader;
  RunFacts facts;
};

void open(Run& run) {
  write_made_run(run.folder.file("run.db"), {.step_count = 2});
  run.reader = require_ok(rundb::Reader::open(run.folder.file("run.db")));
  run.facts = require_ok(load_run_facts(*run.reader));
}

}  // namespace

TEST_CASE("spans are found by a part of their name, in any case, in order of time") {
  Run run;
  open(run);
  const Findings found = require_ok(find_spans(*run.reader, run.facts, "STATE_"));
  CHECK(found.name_ids.size() == 2);
  REQUIRE(found.spans.size() == 10);  // in each step three reads and two writes
  CHECK(std::ranges::is_sorted(found.spans, {}, &FoundSpan::ts));
  CHECK(found.spans[0].ts == 50 * kMs);
  CHECK_FALSE(found.is_cut);
  CHECK(require_ok(find_spans(*run.reader, run.facts, "no such")).spans.empty());
  CHECK(require_ok(find_spans(*run.reader, run.facts, "")).spans.empty());
  CHECK(require_ok(find_spans(*run.reader, run.facts, "'; DROP TABLE span")).spans.empty());
}

TEST_CASE("a chosen span comes with what set it off and what it set off") {
  Run run;
  open(run);
  const Findings updates = require_ok(find_spans(*run.reader, run.facts, "update"));
  REQUIRE_FALSE(updates.spans.empty());
  const ChosenSpan chosen = require_ok(read_span(*run.reader, updates.spans[0].span_id));
  CHECK(chosen.row.ts == 70 * kMs);
  REQUIRE(chosen.flows.size() == 2);
  CHECK(chosen.flows[0].is_cause);
  CHECK(run.facts.string_of(chosen.flows[0].row.name_id) == "state_read");
  CHECK_FALSE(chosen.flows[1].is_cause);
  CHECK(run.facts.string_of(chosen.flows[1].row.name_id) == "state_write");
  CHECK_FALSE(read_span(*run.reader, 999'999).ok());
}

TEST_CASE("a span has its rank among all of its name") {
  Run run;
  open(run);
  // In each of the two steps two reads of 20 ms and one of 15 ms.
  const Findings reads = require_ok(find_spans(*run.reader, run.facts, "state_read"));
  for (const FoundSpan& span : reads.spans) {
    const SpanRank rank = require_ok(rank_of(*run.reader, span.span_id));
    const bool is_short = span.end_ts - span.ts == 15 * kMs;
    CHECK(rank.count == 6);
    CHECK(rank.shorter_count == (is_short ? 0 : 2));
    CHECK(rank.longer_count == (is_short ? 4 : 0));
  }
  CHECK(rank_of(*run.reader, 999'999).error().code() == ErrorCode::not_found);
}

}  // namespace sluice::gui
