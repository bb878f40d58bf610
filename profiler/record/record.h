#pragma once
// What is recorded, as fixed-size records in single-producer rings. Links nothing; core writes,
// profiler/collect reads.
//
// Thread contract: each Ring has one producer thread and one consumer thread. Recorder's tables
// (names, tracks) are set up from any thread under a lock, before or during recording; interning a
// known name is a look-up, so do it once and keep the id.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::record {

enum class NameId : std::uint32_t {};
enum class TrackId : std::uint32_t {};
inline constexpr TrackId kNoTrack{0xffffffffu};

// Recording level: what each level adds to the one before.
enum class Level : std::uint8_t { off, steps, transfers, all };

enum class SpanStatus : std::uint8_t { ok, failed, cancelled };
enum class RecordKind : std::uint8_t { span, step, counter };

// One operation. Times: nanoseconds of the run's clock (real and emulated: CLOCK_MONOTONIC;
// simulated: virtual).
struct SpanRecord {
  std::int64_t submit_ts;
  std::int64_t ts;
  std::int64_t dur;
  std::int64_t bytes;          // payload; exact
  std::int64_t padding_bytes;  // moved besides, because transfers are whole pages
  std::uint32_t name;
  std::uint32_t track;
  std::int32_t step;
  std::int32_t subgroup;  // -1 none
  std::int16_t device;    // -1 none
  std::int16_t layer;     // -1 none
  std::uint8_t status;
};

struct StepRecord {
  std::int64_t ts;
  std::int64_t dur;
  std::int64_t tokens;
  double loss;
  double grad_norm;
  double loss_scale;
  std::int32_t step;
  std::uint8_t skipped;  // 1: overflow, nothing committed
};

struct CounterRecord {
  std::int64_t ts;
  double value;
  std::uint32_t track;
};

struct Record {
  RecordKind kind;
  union {
    SpanRecord span;
    StepRecord step;
    CounterRecord counter;
  };
};
static_assert(sizeof(Record) == 80, "one record is 80 bytes: a ring of 64 Ki records is 5 MiB");

// Bounded; full = the record is dropped and counted, never waited for.
class Ring {
 public:
  explicit Ring(std::size_t capacity);  // rounded up to a power of two
  bool try_push(const Record& record);  // producer
  std::size_t drain(std::vector<Record>& into,
                    std::size_t at_most);  // consumer: appends, returns how many
  std::uint64_t dropped_count() const;

 private:
  // (implementation's own)
};

struct Track {
  TrackId id;
  TrackId parent;
  std::string kind;  // "compute", "host", "device", "link", "thread", "counter"
  std::string name;
};

class Recorder {
 public:
  Recorder();
  NameId intern(std::string_view name);
  TrackId add_track(TrackId parent, std::string_view kind, std::string_view name);
  // A ring for the calling thread's records; lives as long as the Recorder.
  Ring& add_ring(std::size_t capacity);

  Level level() const { return level_.load(std::memory_order_relaxed); }
  void set_level(Level level) { level_.store(level, std::memory_order_relaxed); }

  // For the collector: copies of what has been added since `from` (an index into the table).
  std::vector<std::string> names_since(std::size_t from) const;
  std::vector<Track> tracks_since(std::size_t from) const;
  std::vector<Ring*> rings() const;

 private:
  std::atomic<Level> level_{Level::all};
  // (implementation's own)
};

}  // namespace sluice::record
