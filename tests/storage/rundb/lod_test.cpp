// Levels of detail, beside sums over all spans made the plain way.

#include "storage/rundb/lod.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "storage/rundb/reader.h"
#include "storage/rundb/timeline_reader.h"
#include "storage/rundb/writer.h"
#include "tests/storage/rundb/rundb_fixture.h"

namespace sluice::rundb {
namespace {

// Spans of all lengths from nothing to minutes.
std::vector<SpanRow> made_spans(std::uint64_t seed, std::int64_t count) {
  std::mt19937_64 random(seed);
  std::vector<SpanRow> spans;
  for (std::int64_t i = 0; i < count; ++i) {
    SpanRow span;
    span.track_id = 1 + static_cast<std::int64_t>(random() % 3);
    span.name_id = 1 + static_cast<std::int64_t>(random() % 5);
    span.ts = static_cast<TimeNs>(random() % 100'000'000'000);
    span.dur = static_cast<TimeNs>(random() % (std::uint64_t{1} << (random() % 38)));
    spans.push_back(span);
  }
  return spans;
}

struct PlainBin {
  std::int64_t count = 0;
  TimeNs busy_ns = 0;
  TimeNs longest_ns = 0;
};

PlainBin plain_bin(const std::vector<SpanRow>& spans, std::int64_t track_id, int level,
                   std::int64_t bin) {
  const TimeNs begin = bin * lod_width_ns(level);
  const TimeNs end = begin + lod_width_ns(level);
  PlainBin sum;
  for (const SpanRow& span : spans) {
    if (span.track_id != track_id || span.dur >= kLongBins * lod_width_ns(level)) continue;
    const TimeNs busy = std::min(end, span.ts + span.dur) - std::max(begin, span.ts);
    const bool begins = span.ts >= begin && span.ts < end;
    if (begins) sum.count += 1;
    if (busy > 0) sum.busy_ns += busy;
    if (begins || busy > 0) sum.longest_ns = std::max(sum.longest_ns, span.dur);
  }
  return sum;
}

}  // namespace

TEST_CASE("levels have the sums of their spans, over batches, and long spans stand alone") {
  const TempFolder folder;
  const std::vector<SpanRow> spans = made_spans(1, 600);
  {
    const auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    for (int n = 1; n <= 5; ++n) (void)writer->string_id(std::to_string(n));
    for (std::size_t i = 0; i < spans.size(); i += 100) {
      Batch batch;
      batch.spans.assign(spans.begin() + static_cast<std::ptrdiff_t>(i),
                         spans.begin() + static_cast<std::ptrdiff_t>(i + 100));
      require_ok(writer->append(batch));
    }
    require_ok(writer->close());
  }
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  TimelineReader timeline(*reader);
  for (std::int64_t track = 1; track <= 3; ++track) {
    for (int level = 0; level < kLodLevels; ++level) {
      std::int64_t counted = 0;
      const auto bins = require_ok(timeline.lod(track, level, 0, 1'000'000'000'000));
      auto of_all = require_ok(timeline.lod_of_all_tracks(level, 0, 1'000'000'000'000));
      std::erase_if(of_all, [&](const LodRow& row) { return row.track_id != track; });
      CHECK(std::ranges::equal(bins, of_all, {}, &LodRow::bin, &LodRow::bin));
      CHECK(std::ranges::is_sorted(bins, {}, &LodRow::bin));
      for (const LodRow& row : bins) {
        const PlainBin plain = plain_bin(spans, track, level, row.bin);
        CHECK(row.count == plain.count);
        CHECK(row.busy_ns == plain.busy_ns);
        CHECK(row.longest_ns == plain.longest_ns);
        counted += row.count;
      }
      const auto long_spans = require_ok(timeline.long_spans(track, level, 0, 1'000'000'000'000));
      const auto of_track = std::ranges::count(spans, track, &SpanRow::track_id);
      CHECK(counted + std::ssize(long_spans) == of_track);
      for (const LongSpanRow& span : long_spans) {
        CHECK(span.end_ts - span.ts >= kLongBins * lod_width_ns(level));
        const SpanRow& row = spans[static_cast<std::size_t>(span.span_id - 1)];
        CHECK(row.ts == span.ts);
        CHECK(row.track_id == track);
      }
    }
    // A window finds what reaches into it, and of one track the spans.
    for (const LongSpanRow& span :
         require_ok(timeline.long_spans(track, 0, 5'000'000, 6'000'000))) {
      CHECK((span.ts <= 6'000'000 && span.end_ts >= 5'000'000));
    }
    for (const TimeNs begin : {TimeNs{0}, TimeNs{33'000'000}, TimeNs{7'000'000'000}}) {
      const TimeNs end = begin + 100'000'000;
      auto inside = require_ok(timeline.lod(track, 0, 0, 1'000'000'000'000));
      std::erase_if(inside, [&](const LodRow& row) {
        return row.bin < begin >> lod_shift(0) || row.bin > end >> lod_shift(0);
      });
      CHECK(std::ranges::equal(require_ok(timeline.lod(track, 0, begin, end)), inside, {},
                               &LodRow::bin, &LodRow::bin));
    }
    const auto found = require_ok(timeline.spans_of_track(track, 20'000'000'000, 30'000'000'000));
    const auto expected = std::ranges::count_if(spans, [&](const SpanRow& span) {
      return span.track_id == track && span.ts <= 30'000'000'000 &&
             span.ts + span.dur >= 20'000'000'000;
    });
    CHECK(std::ssize(found) == expected);
  }
}

TEST_CASE("bins of the finest level are the same, whether their spans have rows there or not") {
  const TempFolder folder;
  std::vector<SpanRow> spans;
  const auto append = [&](Writer& writer, TimeNs begin, TimeNs apart_ns, int count, TimeNs dur) {
    Batch batch;
    for (int i = 0; i < count; ++i)
      batch.spans.push_back({.track_id = 1, .name_id = 1, .ts = begin + i * apart_ns, .dur = dur});
    spans.insert(spans.end(), batch.spans.begin(), batch.spans.end());
    require_ok(writer.append(batch));
  };
  {
    const auto writer = require_ok(Writer::create(folder.file("run.db"), IfExists::refuse));
    append(*writer, 50'000, 100'000, 1000, 90'000);  // more spans than bins: a tenth of a second
    append(*writer, 30'000'000, 9'000'000, 5, 1'500'000);   // in the same tenth fewer
    append(*writer, 60'000'000, 20'000'000, 3, 7'000'000);  // long ones of this level
    append(*writer, 98'000'000, 30'000'000, 4, 0);
  }
  const auto reader = require_ok(Reader::open(folder.file("run.db")));
  TimelineReader timeline(*reader);
  REQUIRE(table_of(*reader, "SELECT lod_level FROM span_run") == "0\n1\n0\n1\n");
  const auto bins = require_ok(timeline.lod(1, 0, 0, 300'000'000));
  CHECK(std::ranges::is_sorted(bins, {}, &LodRow::bin));
  std::int64_t counted = 0;
  for (const LodRow& row : bins) {
    const PlainBin plain = plain_bin(spans, 1, 0, row.bin);
    CHECK(row.count == plain.count);
    CHECK(row.busy_ns == plain.busy_ns);
    CHECK(row.longest_ns == plain.longest_ns);
    counted += row.count;
  }
  CHECK(counted == 1009);
  CHECK(require_ok(timeline.long_spans(1, 0, 0, 300'000'000)).size() == 3);
}

TEST_CASE("a span touches few bins, however long it is") {
  for (const TimeNs dur :
       {TimeNs{0}, TimeNs{1}, TimeNs{1} << 21, TimeNs{1} << 30, TimeNs{1} << 42}) {
    LodBatch batch;
    batch.add(SpanRow{.id = 7, .track_id = 1, .name_id = 1, .ts = 12345, .dur = dur}, 0);
    CHECK(std::ssize(batch.bins()) <= kLodLevels * (kLongBins + 1));
    CHECK(batch.long_spans().size() <= 1);
    CHECK(batch.long_spans().size() == (dur >= kLongBins * lod_width_ns(0) ? 1 : 0));
  }
}

TEST_CASE("the level for a width is the finest that is as coarse") {
  CHECK(lod_level_for(1) == 0);
  CHECK(lod_level_for(lod_width_ns(0)) == 0);
  CHECK(lod_level_for(lod_width_ns(0) + 1) == 1);
  CHECK(lod_level_for(lod_width_ns(kLodLevels - 1) * 100) == kLodLevels - 1);
}

}  // namespace sluice::rundb
