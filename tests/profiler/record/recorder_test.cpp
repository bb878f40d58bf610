#include "profiler/record/recorder.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "profiler/record/scoped_span.h"

namespace sluice::record {
namespace {

TEST_CASE("the same name has one id, and the collector sees each name once") {
  Recorder recorder;
  const NameId read = recorder.intern("read");
  const NameId update = recorder.intern("update");
  REQUIRE(recorder.intern(std::string("read")) == read);
  REQUIRE(read != update);
  REQUIRE(recorder.names_since(0) == std::vector<std::string>{"read", "update"});
  REQUIRE(recorder.names_since(1) == std::vector<std::string>{"update"});
  REQUIRE(recorder.names_since(2).empty());
  REQUIRE(recorder.names_since(9).empty());
}

TEST_CASE("ids stay right while the name table grows") {
  Recorder recorder;
  for (int i = 0; i < 1000; ++i) recorder.intern("name " + std::to_string(i));
  for (int i = 0; i < 1000; ++i)
    REQUIRE(recorder.intern("name " + std::to_string(i)) == NameId{static_cast<std::uint32_t>(i)});
}

TEST_CASE("a track is told apart by parent, kind and name") {
  Recorder recorder;
  const TrackId csd0 = recorder.add_track(kNoTrack, "device", "csd0");
  const TrackId csd1 = recorder.add_track(kNoTrack, "device", "csd1");
  const TrackId read0 = recorder.add_track(csd0, "link", "read");
  const TrackId read1 = recorder.add_track(csd1, "link", "read");
  REQUIRE(read0 != read1);
  REQUIRE(recorder.add_track(csd1, "link", "read") == read1);
  const std::vector<Track> tracks = recorder.tracks_since(2);
  REQUIRE(tracks.size() == 2);
  REQUIRE(tracks[0].parent == csd0);
  REQUIRE(tracks[1].id == read1);
  REQUIRE(tracks[1].kind == "link");
}

TEST_CASE("names, tracks and rings may be added by many threads while another reads them") {
  Recorder recorder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&recorder, t] {
      Ring& ring = recorder.add_ring(16);
      for (int i = 0; i < 50; ++i) {
        const NameId name = recorder.intern("shared " + std::to_string(i));
        const TrackId track = recorder.add_track(kNoTrack, "thread", "own " + std::to_string(t));
        ring.try_push(SpanRecord{.name = name, .track = track});
      }
    });
  while (recorder.names_since(0).size() < 50) std::this_thread::yield();
  for (std::thread& thread : threads) thread.join();
  REQUIRE(recorder.names_since(0).size() == 50);
  REQUIRE(recorder.tracks_since(0).size() == 3);
  REQUIRE(recorder.rings().size() == 3);
}

TEST_CASE("recording is on at every level until somebody lowers it") {
  Recorder recorder;
  REQUIRE(recorder.level() == Level::all);
  recorder.set_level(Level::off);
  REQUIRE(recorder.level() == Level::off);
  REQUIRE(Level::steps < Level::transfers);
}

TEST_CASE("a change of level is remembered with its time and who asked, once") {
  Recorder recorder;
  recorder.set_level(Level::all);  // it is
  REQUIRE(recorder.take_level_changes().empty());
  const std::int64_t before = span_now_ns();
  recorder.set_level(Level::steps, "user");
  recorder.set_level(Level::steps, "somebody else");
  recorder.set_level(Level::off, "collector");
  const std::int64_t after = span_now_ns();
  const std::vector<LevelChange> changes = recorder.take_level_changes();
  REQUIRE(changes.size() == 2);
  REQUIRE(changes[0].from == Level::all);
  REQUIRE(changes[0].to == Level::steps);
  REQUIRE(changes[0].who == "user");
  REQUIRE(changes[1].from == Level::steps);
  REQUIRE(changes[1].to == Level::off);
  REQUIRE(changes[1].who == "collector");
  REQUIRE(before <= changes[0].ts);
  REQUIRE(changes[0].ts <= changes[1].ts);
  REQUIRE(changes[1].ts <= after);
  REQUIRE(recorder.take_level_changes().empty());
}

TEST_CASE("levels that many threads change at once leave a chain without a gap") {
  Recorder recorder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&recorder, t] {
      for (int i = 0; i < 500; ++i) recorder.set_level(static_cast<Level>((i * 7 + t) % 4));
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<LevelChange> changes = recorder.take_level_changes();
  Level level = Level::all;
  for (const LevelChange& change : changes) {
    REQUIRE(change.from == level);
    level = change.to;
  }
  REQUIRE(recorder.level() == level);
}

}  // namespace
}  // namespace sluice::record
