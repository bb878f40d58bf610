#include "profiler/cupti/activity_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice::cupti {
namespace {

using record::SpanRecord;

// More than any memory; sums of what is below stay exact.
constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;

// Records are packed and lie where they lie: copied, never referred to.
template <typename Activity>
Activity copied(const std::uint8_t* record) {
  Activity activity;
  std::memcpy(&activity, record, sizeof activity);
  return activity;
}

// A member that is an enum, as a number: damage may have put a value there that the enum does not
// have, and such a one may not be loaded as the enum.
template <typename Activity>
std::uint32_t number_at(const Activity& activity, std::size_t offset) {
  std::uint32_t number;
  std::memcpy(&number, reinterpret_cast<const char*>(&activity) + offset, sizeof number);
  return number;
}

}  // namespace

Result<std::unique_ptr<ActivityDecoder>> ActivityDecoder::create(NextRecord next_record,
                                                                 record::Recorder& recorder,
                                                                 record::Ring& ring,
                                                                 const DecoderOptions& options) {
  ASSIGN_OR_RETURN(const RecordWalk walk, RecordWalk::create(next_record));
  return std::unique_ptr<ActivityDecoder>(new ActivityDecoder(walk, recorder, ring, options));
}

ActivityDecoder::ActivityDecoder(const RecordWalk& walk, record::Recorder& recorder,
                                 record::Ring& ring, const DecoderOptions& options)
    : walk_(walk),
      ring_(ring),
      options_(options),
      names_(recorder),
      correlations_(options.correlations) {}

void ActivityDecoder::decode(std::span<const CompletedBuffer> buffers, std::size_t buffer_bytes,
                             const ClockSnapshots& clock) {
  clock_ = &clock;
  names_.begin_batch();
  for (const CompletedBuffer& buffer : buffers) {
    if (buffer.valid_bytes > buffer_bytes) continue;
    walk_.walk(buffer.data, buffer.valid_bytes,
               [this](std::uint32_t kind, const std::uint8_t* record) { index(kind, record); });
  }
  finish();  // of the batch before, which waited for this index
  for (const CompletedBuffer& buffer : buffers) {
    if (buffer.valid_bytes > buffer_bytes) {
      refuse(0, buffer.valid_bytes, "more valid bytes than it has room for");
    } else {
      note_end(walk_.walk(buffer.data, buffer.valid_bytes,
                          [this](std::uint32_t kind, const std::uint8_t* record) {
                            decode_record(kind, record);
                          }),
               buffer.valid_bytes);
    }
    buffer_number_ += 1;
  }
  push_memory();
  correlations_.end_flush();
  clock_ = nullptr;
}

void ActivityDecoder::finish() {
  for (Held& held : held_) {
    join(held.span, held.correlation);
    push(held.span);
  }
  held_.clear();
}

void ActivityDecoder::index(std::uint32_t kind, const std::uint8_t* record) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return index_call(copied<ApiActivity>(record));
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return index_external(copied<ExternalCorrelationActivity>(record));
    default:
      return;
  }
}

void ActivityDecoder::index_call(const ApiActivity& call) {
  const auto start = static_cast<TimeNs>(call.start);
  if (start <= 0 || !clock_->is_near(start)) return;
  if (Correlation* known = correlations_.find_or_add(call.correlationId)) {
    known->call_ts = clock_->monotonic_from(start);
  }
}

void ActivityDecoder::index_external(const ExternalCorrelationActivity& external) {
  const std::uint64_t id = external.externalId & ~kExternalIdMarkMask;
  const std::uint32_t kind =
      number_at(external, offsetof(ExternalCorrelationActivity, externalKind));
  const bool is_layer = kind == kLayerCorrelation;
  const bool is_step = kind == kStepCorrelation;
  const bool is_ours = (external.externalId & kExternalIdMarkMask) == kExternalIdMark;
  const std::uint64_t id_max = is_layer ? std::numeric_limits<std::int16_t>::max()
                                        : std::numeric_limits<std::int32_t>::max();
  if (!is_ours || (!is_layer && !is_step) || id > id_max) {
    counts_.foreign_id += 1;
    return;
  }
  Correlation* known = correlations_.find_or_add(external.correlationId);
  if (known == nullptr) return;
  if (is_layer) {
    known->layer = static_cast<std::int16_t>(id);
  } else {
    known->step = static_cast<std::int32_t>(id);
  }
}

void ActivityDecoder::decode_record(std::uint32_t kind, const std::uint8_t* record) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return decode(copied<KernelActivity>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return decode(copied<MemcpyActivity>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return decode(copied<PeerMemcpyActivity>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return decode(copied<MemsetActivity>(record));
    case CUPTI_ACTIVITY_KIND_MEMORY:
      return decode(copied<AllocationActivity>(record));
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return decode(copied<MemoryActivity>(record));
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return decode(copied<OverheadActivity>(record));
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return decode(copied<SynchronizationActivity>(record));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return;  // in the index
    default:
      counts_.other_kind += 1;
  }
}

void ActivityDecoder::decode(const KernelActivity& kernel) {
  const Times times = times_of(kernel.start, kernel.end);
  if (!times.good || !is_plausible(kernel.deviceId, 0)) return;
  SpanRecord span{.submit_ts = times.ts, .ts = times.ts, .dur = times.dur};
  if (!names_.try_kernel_name(kernel.name, span.name)) counts_.unreadable_name += 1;
  span.track = names_.stream(kernel.deviceId, kernel.contextId, kernel.streamId);
  push_or_hold(span, kernel.correlationId);
}

void ActivityDecoder::decode(const MemcpyActivity& copy) {
  const Times times = times_of(copy.start, copy.end);
  if (!times.good || !is_plausible(copy.deviceId, copy.bytes)) return;
  push_or_hold({.name = names_.memcpy_name(copy.copyKind, copy.srcKind, copy.dstKind),
                .track = names_.stream(copy.deviceId, copy.contextId, copy.streamId),
                .submit_ts = times.ts,
                .ts = times.ts,
                .dur = times.dur,
                .bytes = static_cast<std::int64_t>(copy.bytes)},
               copy.correlationId);
}

void ActivityDecoder::decode(const PeerMemcpyActivity& copy) {
  const Times times = times_of(copy.start, copy.end);
  if (!times.good ||
      !is_plausible(std::max({+copy.deviceId, +copy.srcDeviceId, +copy.dstDeviceId}), copy.bytes)) {
    return;
  }
  push_or_hold({.name = names_.peer_memcpy_name(copy.srcDeviceId, copy.dstDeviceId),
                .track = names_.stream(copy.deviceId, copy.contextId, copy.streamId),
                .submit_ts = times.ts,
                .ts = times.ts,
                .dur = times.dur,
                .bytes = static_cast<std::int64_t>(copy.bytes)},
               copy.correlationId);
}

void ActivityDecoder::decode(const MemsetActivity& set) {
  const Times times = times_of(set.start, set.end);
  if (!times.good || !is_plausible(set.deviceId, set.bytes)) return;
  push_or_hold({.name = names_.memset_name(),
                .track = names_.stream(set.deviceId, set.contextId, set.streamId),
                .submit_ts = times.ts,
                .ts = times.ts,
                .dur = times.dur,
                .bytes = static_cast<std::int64_t>(set.bytes)},
               set.correlationId);
}

// MEMORY comes when memory is released, MEMORY2 with each change: a recording enables one of them.
void ActivityDecoder::decode(const AllocationActivity& allocation) {
  const std::uint32_t kind = number_at(allocation, offsetof(AllocationActivity, memoryKind));
  change_memory(allocation.start, kind, allocation.deviceId, allocation.bytes, 1);
  if (allocation.end == 0) return;  // still there
  change_memory(allocation.end, kind, allocation.deviceId, allocation.bytes, -1);
}

void ActivityDecoder::decode(const MemoryActivity& memory) {
  const std::uint32_t kind = number_at(memory, offsetof(MemoryActivity, memoryKind));
  const bool is_release = number_at(memory, offsetof(MemoryActivity, memoryOperationType)) ==
                          CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  change_memory(memory.timestamp, kind, memory.deviceId, memory.bytes, is_release ? -1 : 1);
}

// Overhead is nobody's wait: it does not wait for its step, but takes it where it is known.
void ActivityDecoder::decode(const OverheadActivity& overhead) {
  const Times times = times_of(overhead.start, overhead.end);
  if (!times.good) return;
  SpanRecord span{
      .name = names_.overhead_name(number_at(overhead, offsetof(OverheadActivity, overheadKind))),
      .track = names_.overhead(),
      .submit_ts = times.ts,
      .ts = times.ts,
      .dur = times.dur};
  if (overhead.correlationId != 0) join(span, overhead.correlationId);
  span.submit_ts = span.ts;
  ring_.try_push(span);
  counts_.decoded += 1;
}

void ActivityDecoder::decode(const SynchronizationActivity& synchronization) {
  const Times times = times_of(synchronization.start, synchronization.end);
  if (!times.good) return;
  push_or_hold({.name = names_.synchronization_name(
                    number_at(synchronization, offsetof(SynchronizationActivity, type))),
                .track = names_.synchronization(),
                .submit_ts = times.ts,
                .ts = times.ts,
                .dur = times.dur},
               synchronization.correlationId);
}

ActivityDecoder::Times ActivityDecoder::times_of(std::uint64_t start, std::uint64_t end) {
  if (start == 0 || end == 0) {
    counts_.untimed += 1;
    return {false, 0, 0};
  }
  const auto begin_ts = static_cast<TimeNs>(start);
  const auto end_ts = static_cast<TimeNs>(end);
  if (end_ts < begin_ts || !clock_->is_near(begin_ts) || !clock_->is_near(end_ts)) {
    counts_.implausible += 1;
    return {false, 0, 0};
  }
  const TimeNs ts = clock_->monotonic_from(begin_ts);
  // Both ends on the same clock: a step of CLOCK_REALTIME between them makes no negative length.
  return {true, ts, std::max<TimeNs>(clock_->monotonic_from(end_ts) - ts, 0)};
}

bool ActivityDecoder::is_plausible(std::uint32_t gpu, std::uint64_t bytes) {
  if (gpu < kGpuCountMax && bytes < kBytesMax) return true;
  counts_.implausible += 1;
  return false;
}

void ActivityDecoder::push_or_hold(const SpanRecord& span, std::uint32_t correlation) {
  SpanRecord joined = span;
  if (join(joined, correlation)) return push(joined);
  if (held_.size() < options_.held_count_max) {
    held_.push_back({span, correlation});
    return;
  }
  counts_.given_up += 1;
  push(joined);
}

bool ActivityDecoder::join(SpanRecord& span, std::uint32_t correlation) const {
  const Correlation* known = correlations_.find(correlation);
  if (known == nullptr) return false;
  span.step = known->step;
  span.layer = known->layer;
  // The GPU's clock is interpolated by CUPTI, so work may seem to begin just before it was asked
  // for.
  if (known->call_ts >= 0) span.submit_ts = std::min<TimeNs>(known->call_ts, span.ts);
  return known->step >= 0 && known->layer >= 0;
}

void ActivityDecoder::push(const SpanRecord& span) {
  counts_.decoded += 1;
  if (span.step < 0) counts_.without_step += 1;
  ring_.try_push(span);  // the ring counts what it drops
}

void ActivityDecoder::change_memory(std::uint64_t ts, std::uint32_t memory_kind, std::uint32_t gpu,
                                    std::uint64_t bytes, int sign) {
  const bool is_pinned = memory_kind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  if (!is_plausible(is_pinned ? 0 : gpu, bytes)) return;
  const Times times = times_of(ts, ts);
  if (!times.good || memory_kind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE) return;
  memory_changes_.push_back(
      {times.ts, is_pinned ? 0 : gpu, is_pinned, sign * static_cast<std::int64_t>(bytes)});
}

void ActivityDecoder::push_memory() {
  std::stable_sort(memory_changes_.begin(), memory_changes_.end(),
                   [](const MemoryChange& a, const MemoryChange& b) { return a.ts < b.ts; });
  for (const MemoryChange& change : memory_changes_) {
    if (memory_bytes_.size() <= change.gpu) memory_bytes_.resize(change.gpu + 1);
    std::int64_t& bytes = change.is_pinned ? pinned_bytes_ : memory_bytes_[change.gpu];
    // The sum of two changes that are opposite and damaged could run away.
    bytes = std::clamp<std::int64_t>(bytes + change.bytes, -static_cast<std::int64_t>(kBytesMax),
                                     static_cast<std::int64_t>(kBytesMax));
    ring_.try_push(record::CounterRecord{
        .track = change.is_pinned ? names_.pinned_memory() : names_.memory(change.gpu),
        .ts = change.ts,
        .value = static_cast<double>(bytes)});
    counts_.decoded += 1;
  }
  memory_changes_.clear();
}

void ActivityDecoder::note_end(const WalkResult& result, std::size_t valid_bytes) {
  switch (result.end) {
    case WalkEnd::whole:
      return;
    case WalkEnd::truncated:
      counts_.truncated_buffer += 1;
      counts_.refused_bytes += static_cast<std::int64_t>(valid_bytes - result.offset);
      last_damage_ = fmt::format("buffer {}: cut within the record at byte {} of {}",
                                 buffer_number_, result.offset, valid_bytes);
      return;
    case WalkEnd::damaged:
      return refuse(result.offset, valid_bytes, "no record");
  }
}

void ActivityDecoder::refuse(std::size_t offset, std::size_t valid_bytes, const char* why) {
  counts_.damaged_buffer += 1;
  if (valid_bytes >= offset && valid_bytes < kBytesMax) {
    counts_.refused_bytes += static_cast<std::int64_t>(valid_bytes - offset);
  }
  last_damage_ =
      fmt::format("buffer {}: {} at byte {} of {}", buffer_number_, why, offset, valid_bytes);
}

}  // namespace sluice::cupti
