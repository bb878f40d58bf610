#include "gui/data/span_cache.h"

#include "base/split_mix.h"
#include "storage/rundb/span_reader.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

// A live writer, and what a window of it reads beside it.
struct LiveRun {
  explicit LiveRun(const std::string& path)
      : writer(require_ok(rundb::Writer::create(path, rundb::IfExists::refuse))) {
    track = writer->track_id(std::nullopt, "device", "csd0");
    add(500);
    reader = require_ok(rundb::Reader::open(path));
  }

  // Adds spans of random lengths, so that a batch holds spans that begin before the end of the one
  // before.
  void add(std::int64_t count) {
    rundb::Batch batch;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto dur = static_cast<TimeNs>(split_mix(7, number++) % 5000);
      at += static_cast<TimeNs>(split_mix(7, number++) % 2000);
      batch.spans.push_back(
          {.track_id = track,
           .name_id = writer->string_id("work"),
           .submit_ts = at - 10,
           .ts = std::max<TimeNs>(0, at - static_cast<TimeNs>(split_mix(7, number++) % 9000)),
           .dur = dur,
           .step_id = i % 3 == 0 ? -1 : 4,
           .bytes = i,
           .status = i % 50 == 0 ? rundb::SpanStatus::failed : rundb::SpanStatus::ok});
    }
    std::ranges::sort(batch.spans, {}, &rundb::SpanRow::ts);
    require_ok(writer->append(batch));
  }

  void check(SpanCache& cache, TimeNs begin, TimeNs end) {
    const std::vector<rundb::SpanRow> kept = *require_ok(cache.between(*reader, index, begin, end));
    const std::vector<rundb::SpanRow> read =
        require_ok(rundb::SpanReader(*reader).spans_between(begin, end));
    REQUIRE(kept.size() == read.size());
    for (std::size_t i = 0; i < read.size(); ++i) {
      CHECK(kept[i].id == read[i].id);
      CHECK(kept[i].ts == read[i].ts);
      CHECK(kept[i].dur == read[i].dur);
      CHECK(kept[i].submit_ts == read[i].submit_ts);
      CHECK(kept[i].step_id == read[i].step_id);
      CHECK(kept[i].device_id == read[i].device_id);
      CHECK(kept[i].bytes == read[i].bytes);
      CHECK(kept[i].status == read[i].status);
    }
  }

  std::unique_ptr<rundb::Writer> writer;
  std::unique_ptr<rundb::Reader> reader;
  SpanIndex index;
  std::int64_t track = 0;
  TimeNs at = 0;
  std::uint64_t number = 0;
};

}  // namespace

TEST_CASE("a live run that is followed is read on from where it was, and nothing is missing") {
  const TempFolder folder;
  LiveRun run(folder.file("run.db"));
  SpanCache cache;
  for (int round = 0; round < 20; ++round) {
    require_ok(run.index.update(*run.reader));
    // Its begin moves on now and then, its end lies behind all that is there, or just before.
    const TimeNs begin = run.at / 2 / 100'000 * 100'000;
    run.check(cache, begin, round % 4 == 3 ? run.at - 20'000 : run.at + 1'000'000);
    run.add(100);
  }
  // Read whole once at first, and each time that the end was not the run's.
  CHECK(cache.read_count() < run.index.span_count() * 4);
  require_ok(run.writer->close());
}

TEST_CASE("a nearer look at spans that were read reads nothing") {
  const TempFolder folder;
  LiveRun run(folder.file("run.db"));
  require_ok(run.index.update(*run.reader));
  SpanCache cache;
  run.check(cache, 0, run.at + 10'000);
  const std::int64_t read_count = cache.read_count();
  CHECK(read_count == 500);
  run.check(cache, run.at / 4, run.at / 2);
  run.check(cache, run.at / 3, run.at / 2 - 1000);
  CHECK(cache.read_count() == read_count);
  run.check(cache, 0, run.at);  // farther again
  CHECK(cache.read_count() > read_count);
  require_ok(run.writer->close());
}

TEST_CASE("spans that the index does not know yet are left to the next look") {
  const TempFolder folder;
  LiveRun run(folder.file("run.db"));
  require_ok(run.index.update(*run.reader));
  const std::int64_t known = run.index.span_count();
  run.add(100);
  SpanCache cache;
  CHECK(std::ssize(*require_ok(cache.between(*run.reader, run.index, 0, run.at + 10'000))) ==
        known);
  require_ok(run.index.update(*run.reader));
  run.check(cache, 0, run.at + 10'000);
  require_ok(run.writer->close());
}

}  // namespace sluice::gui
