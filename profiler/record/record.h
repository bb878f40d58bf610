#pragma once
// The records: of fixed size, trivially copyable. Links nothing; core writes them into rings
// (profiler/record/ring.h), profiler/collect drains them into the run database.
//
// A record is one cache line, so a push dirties one line of the ring and never two. A new kind of
// record is a new struct that begins with its RecordKind and fits the line.
//
// Thread contract: plain data.

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sluice::record {

enum class NameId : std::uint32_t {};
enum class TrackId : std::uint32_t {};
inline constexpr TrackId kNoTrack{0xffffffffu};

// Recording level: what each level adds to the one before.
enum class Level : std::uint8_t { off, steps, transfers, all };
inline constexpr int kLevelCount = 4;
constexpr const char* level_name(Level level) {
  constexpr const char* kNames[kLevelCount] = {"off", "steps", "transfers", "all"};
  return kNames[static_cast<int>(level)];
}

enum class SpanStatus : std::uint8_t { ok, failed, cancelled };
enum class RecordKind : std::uint8_t { span, step, counter, flow };

// A span by its ring and by its number among all that was pushed there: known to whoever pushed it,
// long before it has a row.
enum class SpanRef : std::uint64_t {};
inline constexpr SpanRef kNoSpan{~std::uint64_t{0}};
inline constexpr int kRefNumberBits = 48;
constexpr SpanRef span_ref(std::uint32_t ring, std::uint64_t number) {
  return SpanRef{std::uint64_t{ring} << kRefNumberBits | number};
}
constexpr std::uint32_t ring_of(SpanRef ref) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(ref) >> kRefNumberBits);
}
constexpr std::uint64_t number_of(SpanRef ref) {
  return static_cast<std::uint64_t>(ref) & ((std::uint64_t{1} << kRefNumberBits) - 1);
}

// One operation, or with dur 0 an instant. Times: nanoseconds of the run's clock (real and
// emulated: CLOCK_MONOTONIC; simulated: virtual). -1 in step, subgroup, device and layer: none.
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
  double lr = 0;
};

struct CounterRecord {
  RecordKind kind = RecordKind::counter;
  TrackId track{};
  std::int64_t ts = 0;
  double value = 0;
};

// A cause across tracks. Pushed after both spans were.
struct FlowRecord {
  RecordKind kind = RecordKind::flow;
  SpanRef from = kNoSpan;
  SpanRef to = kNoSpan;
};

inline constexpr std::size_t kCacheLineBytes = 64;

struct alignas(kCacheLineBytes) Record {
  // All alternatives begin with their kind, so it may be read through any of them.
  union {
    SpanRecord span;
    StepRecord step;
    CounterRecord counter;
    FlowRecord flow;
  };

  Record() : span{} {}
  Record(const SpanRecord& record) : span(record) {}
  Record(const StepRecord& record) : step(record) {}
  Record(const CounterRecord& record) : counter(record) {}
  Record(const FlowRecord& record) : flow(record) {}

  RecordKind kind() const { return span.kind; }
};
static_assert(sizeof(Record) == kCacheLineBytes,
              "one record is one cache line: a ring of 64 Ki records is 4 MiB");
static_assert(std::is_trivially_copyable_v<Record>, "a ring copies records as bytes");
static_assert(std::is_standard_layout_v<SpanRecord> && std::is_standard_layout_v<StepRecord> &&
                  std::is_standard_layout_v<CounterRecord> && std::is_standard_layout_v<FlowRecord>,
              "Record::kind() reads the common first member");

}  // namespace sluice::record
