#pragma once
// What is recorded: fixed-size, trivially copyable records. Links nothing; core writes them into
// rings (profiler/record/ring.h), profiler/collect drains them into the run database.
//
// A record is one cache line, so a push dirties one line of the ring and never two. A new kind of
// record (a flow, an instant) is a new struct that begins with its RecordKind and fits the line.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::record {

enum class NameId : std::uint32_t {};
enum class TrackId : std::uint32_t {};
inline constexpr TrackId kNoTrack{0xffffffffu};

// Recording level: what each level adds to the one before.
enum class Level : std::uint8_t { off, steps, transfers, all };

enum class SpanStatus : std::uint8_t { ok, failed, cancelled };
enum class RecordKind : std::uint8_t { span, step, counter };

// One operation. Times: nanoseconds of the run's clock (real and emulated: CLOCK_MONOTONIC;
// simulated: virtual). -1 in step, subgroup, device and layer: none.
struct SpanRecord {
  RecordKind kind = RecordKind::span;
  SpanStatus status = SpanStatus::ok;
  std::int16_t device = -1;
  std::int16_t layer = -1;
  NameId name{};
  TrackId track{};
  std::int32_t step = -1;
  std::int32_t subgroup = -1;
  std::int64_t submit_ts = 0;
  std::int64_t ts = 0;  // started; ts - submit_ts is the time it waited
  std::int64_t dur = 0;
  std::int64_t bytes = 0;          // payload that moved; exact, also for what failed half-way
  std::int64_t padding_bytes = 0;  // moved besides, because transfers are whole pages
};

struct StepRecord {
  RecordKind kind = RecordKind::step;
  bool skipped = false;  // overflow: nothing was committed
  std::int32_t step = 0;
  std::int64_t ts = 0;
  std::int64_t dur = 0;
  std::int64_t tokens = 0;
  double loss = 0;
  double grad_norm = 0;
  double loss_scale = 1;
};

struct CounterRecord {
  RecordKind kind = RecordKind::counter;
  TrackId track{};
  std::int64_t ts = 0;
  double value = 0;
};

inline constexpr std::size_t kCacheLineBytes = 64;

struct alignas(kCacheLineBytes) Record {
  // All alternatives begin with their kind, so it may be read through any of them.
  union {
    SpanRecord span;
    StepRecord step;
    CounterRecord counter;
  };

  Record() : span{} {}
  Record(const SpanRecord& record) : span(record) {}
  Record(const StepRecord& record) : step(record) {}
  Record(const CounterRecord& record) : counter(record) {}

  RecordKind kind() const { return span.kind; }
};
static_assert(sizeof(Record) == kCacheLineBytes,
              "one record is one cache line: a ring of 64 Ki records is 4 MiB");
static_assert(std::is_trivially_copyable_v<Record>, "a ring copies records as bytes");
static_assert(std::is_standard_layout_v<SpanRecord> && std::is_standard_layout_v<StepRecord> &&
                  std::is_standard_layout_v<CounterRecord>,
              "Record::kind() reads the common first member");

}  // namespace sluice::record
