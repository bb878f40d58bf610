#include "gui/data/timeline_window.h"

#include <map>

#include "base/split_mix.h"
#include "gui/data/run_facts.h"
#include "gui/data/span_cache.h"
#include "gui/data/span_index.h"
#include "storage/rundb/lod.h"
#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

struct OpenRun {
  std::unique_ptr<rundb::Reader> reader;
  RunFacts facts;
  SpanIndex index;
  SpanCache cache;
};

OpenRun open_run(const std::string& path) {
  OpenRun run;
  run.reader = require_ok(rundb::Reader::open(path));
  run.facts = require_ok(load_run_facts(*run.reader));
  require_ok(run.index.update(*run.reader));
  return run;
}

TimelineWindow window_of(OpenRun& run, const TimelineRequest& request) {
  return require_ok(read_timeline(*run.reader, run.facts, run.index, run.cache, request));
}

// Spans of random lengths, some of which overlap, on two tracks.
void write_random_run(const std::string& path, std::int64_t count, TimeNs longest_ns) {
  auto writer = require_ok(rundb::Writer::create(path, rundb::IfExists::refuse));
  const std::int64_t device = writer->track_id(std::nullopt, "device", "csd0");
  const std::array tracks = {writer->track_id(device, "device", "csd0 read"),
                             writer->track_id(device, "device", "csd0 write")};
  std::uint64_t index = 0;
  const auto random = [&index] { return split_mix(3, index++); };
  std::array<TimeNs, 2> at{};
  for (std::int64_t done = 0; done < count;) {
    rundb::Batch batch;
    const std::int64_t batch_count = std::min<std::int64_t>(1000, count - done);
    for (std::size_t t = 0; t < tracks.size(); ++t) {
      for (std::int64_t i = 0; i < batch_count / 2; ++i) {
        const auto dur = static_cast<TimeNs>(random() % static_cast<std::uint64_t>(longest_ns));
        at[t] += static_cast<TimeNs>(random() % static_cast<std::uint64_t>(longest_ns));
        batch.spans.push_back({.track_id = tracks[t],
                               .name_id = writer->string_id(t == 0 ? "state_read" : "state_write"),
                               .submit_ts = at[t],
                               .ts = at[t],
                               .dur = dur,
                               .bytes = 4096});
      }
    }
    done += batch_count;
    require_ok(writer->append(batch));
  }
  require_ok(writer->close());
}

std::int64_t counted(const TimelineWindow& window, std::int64_t track_id) {
  std::int64_t count = 0;
  for (const Box& box : window.of_track(track_id)->boxes) count += box.count;
  return count;
}

}  // namespace

TEST_CASE("what is shown can be read without room around it, and is drawn from the same") {
  const TempFolder folder;
  write_random_run(folder.file("run.db"), 20'000, 10'000);
  OpenRun run = open_run(folder.file("run.db"));
  const TimelineRequest request{1'000'000, 3'000'000, 1'000};
  const TimelineWindow wide = window_of(run, request);
  const TimelineWindow narrow = require_ok(
      read_timeline(*run.reader, run.facts, run.index, run.cache, request, TimelineRoom::none));
  CHECK(narrow.request == wide.request);
  CHECK(narrow.has_spans == wide.has_spans);
  CHECK(narrow.covers(request.begin, request.end));
  CHECK(wide.begin < narrow.begin);
  CHECK(wide.end > narrow.end);
}

TEST_CASE("a window of few spans shows each with what it carries") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  OpenRun run = open_run(folder.file("run.db"));
  const TimelineWindow window = window_of(run, {0, 100 * kMs, 10'000});
  CHECK(window.has_spans);
  CHECK(window.covers(-50 * kMs, 150 * kMs));
  const TrackBoxes& reads = *window.of_track(run.facts.tracks[2].id);
  REQUIRE(reads.boxes.size() == 4);  // two of this step, two of the next one, within the room
  CHECK(reads.boxes[0].is_span());
  CHECK(reads.boxes[0].bytes == 5'000'000);
  CHECK(reads.boxes[0].padding_bytes == 4096);
  CHECK(reads.boxes[0].device == 0);
  CHECK(reads.boxes[0].subgroup == 4);
  CHECK(reads.boxes[1].lane == 1);
  CHECK(reads.lane_count == 2);
}

TEST_CASE("folding loses no span, no byte and no time") {
  const TempFolder folder;
  write_random_run(folder.file("run.db"), 6000, 20'000);
  OpenRun run = open_run(folder.file("run.db"));
  const TimeNs end = run.index.end_ts();
  const TimelineWindow window = window_of(run, {0, end, 500'000});
  REQUIRE(window.has_spans);
  for (const char* name : {"read", "write"}) {
    const auto track = std::ranges::find(run.facts.tracks, name, &TrackFacts::name);
    REQUIRE(track != run.facts.tracks.end());
    const TrackBoxes& boxes = *window.of_track(track->id);
    CHECK(counted(window, track->id) == 3000);
    CHECK(boxes.boxes.size() < 1000);
    std::int64_t bytes = 0;
    TimeNs busy_ns = 0;
    for (const Box& box : boxes.boxes) {
      bytes += box.bytes;
      busy_ns += box.busy_ns;
      CHECK(box.end_ts - box.ts <= boxes.longest_ns);
    }
    CHECK(bytes == 3000 * 4096);
    const std::string sum = rundb::table_of(
        *run.reader, "SELECT sum(dur) FROM span WHERE track_id = " + std::to_string(track->id));
    CHECK(std::to_string(busy_ns) + "\n" == sum);
    CHECK(std::ranges::is_sorted(boxes.boxes, {}, &Box::ts));
  }
}

TEST_CASE("boxes of one lane do not overlap, except on the last") {
  const TempFolder folder;
  write_random_run(folder.file("run.db"), 2000, 20'000);
  OpenRun run = open_run(folder.file("run.db"));
  const TimelineWindow window = window_of(run, {0, run.index.end_ts(), 1});
  for (const TrackBoxes& track : window.tracks) {
    std::map<int, TimeNs> end_of_lane;
    for (const Box& box : track.boxes) {
      const bool is_last = box.lane == kLanesMax - 1;
      if (!is_last && end_of_lane.contains(box.lane)) CHECK(box.ts >= end_of_lane[box.lane]);
      end_of_lane[box.lane] = box.end_ts;
    }
  }
}

TEST_CASE("a long stretch is drawn from bins and long spans, which hold all spans") {
  const TempFolder folder;
  write_random_run(folder.file("run.db"), 80'000, 20 * kMs);
  OpenRun run = open_run(folder.file("run.db"));
  const TimeNs end = run.index.end_ts();
  const TimelineWindow window = window_of(run, {0, end, end / 1000});
  CHECK_FALSE(window.has_spans);
  const TimeNs width_ns = rundb::lod_width_ns(rundb::lod_level_for(end / 1000));
  for (const char* name : {"read", "write"}) {
    const auto track = std::ranges::find(run.facts.tracks, name, &TrackFacts::name);
    CHECK(counted(window, track->id) == 40'000);
    const TrackBoxes& boxes = *window.of_track(track->id);
    CHECK(std::ranges::is_sorted(boxes.boxes, {}, &Box::ts));
    for (const Box& box : boxes.boxes) {
      if (box.is_span()) CHECK(box.end_ts - box.ts >= 4 * width_ns);
    }
  }
}

TEST_CASE("many spans in a short window come as bins wider than a column") {
  const TempFolder folder;
  write_random_run(folder.file("run.db"), 240'000, 1000);
  OpenRun run = open_run(folder.file("run.db"));
  const TimeNs end = run.index.end_ts();
  CHECK(run.index.span_count() == 240'000);
  CHECK(run.index.estimate(0, end) == Approx(240'000).epsilon(0.01));
  CHECK(run.index.estimate(0, end / 10) == Approx(24'000).epsilon(0.1));
  const TimelineWindow all = window_of(run, {0, end, end / 1000});
  CHECK_FALSE(all.has_spans);
  const TimelineWindow part = window_of(run, {0, end / 20, end / 20'000});
  CHECK(part.has_spans);
}

TEST_CASE("the strip of the whole run says what was running where") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {.step_count = 2});
  OpenRun run = open_run(folder.file("run.db"));
  const Minimap strip = require_ok(read_minimap(*run.reader, run.facts, 0, 200 * kMs, 20));
  REQUIRE(strip.columns.size() == 20);
  CHECK(run.facts.string_of(strip.columns[0].name_id) == "forward");
  CHECK(run.facts.string_of(strip.columns[3].name_id) == "backward");
  CHECK(run.facts.string_of(strip.columns[13].name_id) == "backward");
  CHECK(strip.columns[5].busy == Approx(1.0).margin(0.2));
}

TEST_CASE("a window of no time and one far away are empty, not errors") {
  const TempFolder folder;
  write_made_run(folder.file("run.db"), {});
  OpenRun run = open_run(folder.file("run.db"));
  CHECK(counted(window_of(run, {1'000'000 * kMs, 1'000'001 * kMs, 1000}), run.facts.tracks[0].id) ==
        0);
  const Minimap strip = require_ok(read_minimap(*run.reader, run.facts, 5, 5, 10));
  CHECK(strip.columns[0].name_id == -1);
}

}  // namespace sluice::gui
