// Which rows the timeline has, what a closed group shows, and where names of changes stand, without
// a window around it.

#include <catch2/catch.hpp>

#include "gui/data/run_snapshot.h"
#include "gui/views/group_summary.h"
#include "gui/views/timeline_layout.h"
#include "gui/views/timeline_ruler.h"
#include "gui/widgets/mark_labels.h"

namespace sluice::gui {
namespace {

constexpr std::int64_t kHost = 1;
constexpr std::int64_t kCreate = 2;
constexpr std::int64_t kRead = 3;

// From 0 to 1000: the host and reads work all the time, the state is created in the first tenth.
RunSnapshot run_of_two_groups() {
  RunFacts facts;
  const auto add = [&facts](std::int64_t id, const char* group, const char* name) {
    TrackFacts& track = facts.tracks.emplace_back();
    track.id = id;
    track.group = group;
    track.name = name;
  };
  add(kHost, "host", "");
  add(kCreate, "csd0", "create_state");
  add(kRead, "csd0", "state_read");
  add(4, "csd0", "never used");
  RunSnapshot run;
  run.facts = std::make_shared<const RunFacts>(std::move(facts));
  run.used_tracks = {{kHost, {0, 1000}}, {kCreate, {0, 100}}, {kRead, {100, 1000}}};
  run.end_ts = 1000;
  return run;
}

std::vector<std::string> labels_of(const TimelineLayout& layout) {
  std::vector<std::string> labels;
  for (const TimelineRow& row : layout.rows) labels.push_back(row.label);
  return labels;
}

using Labels = std::vector<std::string>;
const Labels kAllRows = {"host", "csd0", "create_state", "state_read"};
const Labels kWithoutCreation = {"host", "csd0", "state_read"};

float width_of(const std::string& text) { return 6 * static_cast<float>(text.size()); }

std::vector<std::string> texts_of(const std::vector<MarkLabel>& labels) {
  std::vector<std::string> texts;
  for (const MarkLabel& label : labels) texts.push_back(label.text);
  return texts;
}

}  // namespace

TEST_CASE("the row of a phase that is over goes far behind it, and comes back near it") {
  const RunSnapshot run = run_of_two_groups();
  TimelineFolding folding;
  // The width of the view is 100; the phase ends at 100.
  CHECK_FALSE(folding.update(run, 190, 290, true));
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
  CHECK(folding.update(run, 210, 310, true));
  const TimelineLayout layout = layout_of(run, folding);
  CHECK(labels_of(layout) == kWithoutCreation);
  CHECK(layout.rows[1].away == std::vector<std::int64_t>{kCreate});
  // Between the distances at which it goes and comes nothing changes.
  CHECK_FALSE(folding.update(run, 190, 290, true));
  CHECK_FALSE(folding.update(run, 130, 230, true));
  CHECK(folding.update(run, 120, 220, true));
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
}

TEST_CASE("rows stay while the view moves, and what awaits its rest is said") {
  const RunSnapshot run = run_of_two_groups();
  TimelineFolding folding;
  CHECK_FALSE(folding.update(run, 0, 1000, true));
  // Smoothly nearer, to the far end.
  for (TimeNs begin = 0; begin < 900; begin += 50)
    CHECK_FALSE(folding.update(run, begin, 1000, false));
  CHECK(folding.awaits_rest());
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
  CHECK(folding.update(run, 900, 1000, true));
  CHECK_FALSE(folding.awaits_rest());
  CHECK(labels_of(layout_of(run, folding)) == kWithoutCreation);
}

TEST_CASE("a first view needs no rest, all rows can be kept, and one can be asked for") {
  const RunSnapshot run = run_of_two_groups();
  TimelineFolding folding;
  CHECK(folding.update(run, 800, 1000, false));
  CHECK(labels_of(layout_of(run, folding)) == kWithoutCreation);
  folding.toggle_keeping_all_rows();
  CHECK(folding.update(run, 800, 1000, true));
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
  folding.toggle_keeping_all_rows();
  CHECK(folding.update(run, 800, 1000, true));
  folding.toggle("csd0");
  folding.reveal(*run.facts, kCreate);
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
}

TEST_CASE("a track that worked in the later half of the run keeps its row") {
  RunSnapshot run = run_of_two_groups();
  run.used_tracks[kCreate].end_ts = 600;
  TimelineFolding folding;
  CHECK_FALSE(folding.update(run, 990, 1000, true));
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
}

TEST_CASE("a closed group is one row, which stands for all of its tracks") {
  const RunSnapshot run = run_of_two_groups();
  TimelineFolding folding;
  folding.toggle("csd0");
  folding.toggle("host");  // it has one row only: nothing to close
  const TimelineLayout layout = layout_of(run, folding);
  CHECK(labels_of(layout) == Labels{"host", "csd0"});
  CHECK_FALSE(layout.rows[0].has_rows);
  CHECK_FALSE(layout.rows[0].is_summary());
  CHECK(layout.rows[1].is_summary());
  CHECK(layout.rows[1].members == std::vector<std::int64_t>{kCreate, kRead});
  CHECK(layout.row_of(kRead) == &layout.rows[1]);
  CHECK(layout.row_of(99) == nullptr);
  folding.open_all();
  CHECK(labels_of(layout_of(run, folding)) == kAllRows);
  folding.close_all(*run.facts);
  CHECK(labels_of(layout_of(run, folding)) == Labels{"host", "csd0"});
}

TEST_CASE("a pinned group stands first, and tracks that nobody wants to see have no row") {
  const RunSnapshot run = run_of_two_groups();
  TrackChoice choice;
  choice.toggle_pin("csd0");
  CHECK(labels_of(layout_of(run, {}, choice)) ==
        Labels{"csd0", "create_state", "state_read", "host"});
  choice.set_text("-create");
  CHECK(labels_of(layout_of(run, {}, choice)) == Labels{"csd0", "state_read", "host"});
  choice.set_text("nothing has this");
  CHECK(layout_of(run, {}, choice).rows.empty());
}

TEST_CASE("the row that is held says how far it has moved") {
  const RunSnapshot run = run_of_two_groups();
  TimelineFolding folding;
  const TimelineLayout before = layout_of(run, folding);
  folding.update(run, 900, 1000, true);
  const TimelineLayout after = layout_of(run, folding);
  CHECK(moved_down(before, after, 0) == 0);
  CHECK(moved_down(before, after, before.rows[3].y + 1) == -before.rows[2].height);
  // Held by a row that goes: the next one counts.
  CHECK(moved_down(before, after, before.rows[2].y + 1) == -before.rows[2].height);
}

TEST_CASE("a summary has the mean number of busy tracks, of spans and of bins") {
  TimelineWindow window;
  const auto box = [](TimeNs ts, TimeNs end_ts, TimeNs busy_ns, std::int32_t name_id) {
    Box made;
    made.ts = ts;
    made.end_ts = end_ts;
    made.busy_ns = busy_ns;
    made.name_id = name_id;
    return made;
  };
  // The first is busy from 0 to 25 and, twice at once, from 50 to 100; the second half the time.
  window.tracks.push_back({.track_id = 1,
                           .boxes = {box(0, 25, 25, 7), box(50, 100, 50, 8), box(50, 100, 50, 8)},
                           .longest_ns = 50});
  window.tracks.push_back({.track_id = 2, .boxes = {box(0, 100, 50, 9)}, .longest_ns = 100});
  window.tracks.push_back({.track_id = 3, .boxes = {box(0, 100, 100, 9)}, .longest_ns = 100});
  const std::vector<std::int64_t> members = {1, 2};
  const std::vector<BusyColumn> columns = busy_columns(window, members, 0, 100, 4);
  REQUIRE(columns.size() == 4);
  CHECK(columns[0].busy_tracks == Approx(1.5F));
  CHECK(columns[0].name_id == 7);
  CHECK(columns[1].busy_tracks == Approx(0.5F));
  CHECK(columns[1].name_id == 9);
  CHECK(columns[2].busy_tracks == Approx(1.5F));
  CHECK(columns[3].name_id == 8);
  CHECK(busy_columns(window, members, 100, 100, 4).empty());
  // What lies outside adds nothing.
  for (const BusyColumn& column : busy_columns(window, members, 200, 300, 4))
    CHECK(column.busy_tracks == 0);
}

TEST_CASE("names of changes stand where there is room, and are counted where there is none") {
  const MarkSpace space{.left = 0, .right = 400, .gap = 4};
  const auto texts = [&](const std::vector<PlacedMark>& marks) {
    return texts_of(place_mark_labels(marks, space, width_of));
  };
  CHECK(texts({{10, "buffers 3 to 2"}, {200, "density"}}) == Labels{"buffers 3 to 2", "density"});
  CHECK(texts({{10, "buffers 3 to 2"}, {90, "density"}}) == Labels{"1 change", "density"});
  CHECK(texts({{10, "a"}, {12, "b"}, {300, "density"}}) == Labels{"a, b", "density"});
  CHECK(texts({{10, "buffers"}, {12, "density"}, {20, "prefetch"}, {90, "end"}}) ==
        Labels{"3 changes", "end"});
  // At the right edge a name ends there, and many have their number.
  const auto edge = place_mark_labels(std::vector<PlacedMark>{{390, "pipeline"}}, space, width_of);
  REQUIRE(edge.size() == 1);
  CHECK(edge[0].text == "pipeline");
  CHECK(edge[0].begin + edge[0].width <= 400);
}

TEST_CASE("no label covers another and every mark is named, wherever the marks are") {
  std::uint32_t state = 1;
  const auto random = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<PlacedMark> marks;
    const std::uint32_t count = 1 + random(40);
    for (std::uint32_t i = 0; i < count; ++i)
      marks.push_back({static_cast<float>(random(500)), std::string(1 + random(20), 'x')});
    std::ranges::sort(marks, {}, &PlacedMark::x);
    const MarkSpace space{.left = 0, .right = 500, .gap = 4, .row_max = 1 + random(3)};
    const std::vector<MarkLabel> labels = place_mark_labels(marks, space, width_of);
    std::size_t named = 0;
    std::vector<float> end(space.row_max, -4);
    for (const MarkLabel& label : labels) {
      CHECK(label.first == named);
      named += label.count;
      REQUIRE(label.row < space.row_max);
      CHECK(label.begin >= end[label.row] + space.gap);
      CHECK(label.begin + label.width <= 500);
      end[label.row] = label.begin + label.width;
    }
    CHECK(named == marks.size());
  }
}

TEST_CASE("a change is marked where its first step begins, and a step is found under a time") {
  std::vector<rundb::StepRow> steps;
  for (std::int64_t id = 0; id < 3; ++id)
    steps.push_back({.id = id, .ts = 100 + id * 100, .dur = 90});
  CHECK(begin_of({.step = 1, .text = {}, .who = {}}, steps) == 200);
  CHECK(begin_of({.step = 3, .text = {}, .who = {}}, steps) == 390);  // it has begun, and not ended
  CHECK_FALSE(begin_of({.step = 4, .text = {}, .who = {}}, steps));
  CHECK_FALSE(begin_of({.step = 0, .text = {}, .who = {}}, {}));
  CHECK(step_at_or_after(steps, 250)->id == 1);
  CHECK(step_at_or_after(steps, 195)->id == 1);  // between two: the one that ends next
  CHECK(step_at_or_after(steps, 390) == nullptr);
}

}  // namespace sluice::gui
