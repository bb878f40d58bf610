#pragma once
// The recorder of a run: the recording level, the rings of its threads, and the tables that give
// names and tracks their ids.
//
// Thread contract: every function from any thread. level() is one relaxed load, which is all that
// recording costs where it is off. The others take a lock: intern a name and add a track once, at
// set-up or when they first appear, and keep the id.
//
// The level changes through set_level alone, whoever asks: the run's settings, a person while the
// run is live, the collector when it takes too much. What ends from then on is recorded as the new
// level says, and what the run database says of the change comes from here.

#include <atomic>
#include <compare>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiler/record/record.h"
#include "profiler/record/ring.h"

namespace sluice::record {

// A link that the spans of a track cross, and which way: `read` is out of a drive.
enum class LinkDirection : std::uint8_t { read, write };
struct TrackLink {
  std::int64_t link_id = 0;  // of the run's facts (profiler/collect)
  LinkDirection direction = LinkDirection::read;
  auto operator<=>(const TrackLink&) const = default;
};

struct Track {
  TrackId id;
  TrackId parent;    // kNoTrack: a root
  std::string kind;  // "compute", "host", "device", "link", "thread", "counter"
  std::string name;
  std::vector<TrackLink> links = {};  // the route of its transfers; empty: it carries none
};

// When a level was left for another, by CLOCK_MONOTONIC, and who asked for that.
struct LevelChange {
  std::int64_t ts;
  Level from;
  Level to;
  std::string who;
};

// An event of the run as a whole, such as a snapshot that somebody asks for, by CLOCK_MONOTONIC.
struct Note {
  std::int64_t ts;
  std::string text;
};

class Recorder {
 public:
  Recorder() = default;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // The same text has the same id.
  NameId intern(std::string_view name);
  // The same parent, kind, name and links are the same track.
  TrackId add_track(TrackId parent, std::string_view kind, std::string_view name,
                    std::span<const TrackLink> links = {});
  // A ring for one producer thread; lives as long as the Recorder.
  Ring& add_ring(std::size_t capacity);

  // Around a fork: the child finds it unlocked.
  void lock_for_fork() { mutex_.lock(); }
  void unlock_after_fork() { mutex_.unlock(); }

  Level level() const { return level_.load(std::memory_order_relaxed); }
  // Takes effect at once, on all threads; `who` in a word or two: "user", "collector". Nothing
  // happens where it is the level already.
  void set_level(Level level, std::string_view who = "user");

  // For the collector, which writes them down: what has changed since the last call, oldest first.
  std::vector<LevelChange> take_level_changes();

  // An instant on the recorder's own track, whatever the level is; taken by the collector as the
  // changes of level are.
  void note(std::string text);
  std::vector<Note> take_notes();

  // For the collector: copies of what has been added since `from`, an index into the table. An id
  // is the index of its row.
  std::vector<std::string> names_since(std::size_t from) const;
  std::vector<Track> tracks_since(std::size_t from) const;
  std::vector<Ring*> rings() const;

 private:
  std::atomic<Level> level_{Level::all};  // written under mutex_
  std::atomic<std::uint32_t> ring_count_{0};

  mutable std::mutex mutex_;  // guards what follows
  std::vector<LevelChange> level_changes_;
  std::vector<Note> notes_;
  std::deque<std::string> names_;  // a deque: the map's keys point into it
  std::unordered_map<std::string_view, NameId> name_ids_;
  std::vector<Track> tracks_;
  std::vector<std::unique_ptr<Ring>> rings_;
};

}  // namespace sluice::record
