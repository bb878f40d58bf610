#include "profiler/cupti/cupti_recording.h"

#include <cupti.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "profiler/cupti/activity_buffers.h"
#include "profiler/cupti/activity_decoder.h"
#include "profiler/cupti/activity_structs.h"
#include "profiler/cupti/clock_snapshots.h"
#include "profiler/cupti/cupti_api.h"

namespace sluice::cupti {
namespace {

struct NamedKind {
  CUpti_ActivityKind kind;
  const char* name;
};

// External ids come with records of calls only, so both kinds of calls are on.
constexpr NamedKind kKinds[] = {
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, "EXTERNAL_CORRELATION"},
    {CUPTI_ACTIVITY_KIND_RUNTIME, "RUNTIME"},
    {CUPTI_ACTIVITY_KIND_DRIVER, "DRIVER"},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, "CONCURRENT_KERNEL"},
    {CUPTI_ACTIVITY_KIND_MEMCPY, "MEMCPY"},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, "MEMCPY2"},
    {CUPTI_ACTIVITY_KIND_MEMSET, "MEMSET"},
    {CUPTI_ACTIVITY_KIND_MEMORY2, "MEMORY2"},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, "SYNCHRONIZATION"},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, "OVERHEAD"},
};

// Calls that frameworks make by the thousand and that launch nothing.
constexpr CUpti_CallbackId kQuietRuntimeCalls[] = {
    CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaSetDevice_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaPeekAtLastError_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaDeviceGetAttribute_v5000,
    CUPTI_RUNTIME_TRACE_CBID_cudaEventQuery_v3020,
    CUPTI_RUNTIME_TRACE_CBID_cudaStreamIsCapturing_v10000,
};
constexpr CUpti_CallbackId kQuietDriverCalls[] = {
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent,
    CUPTI_DRIVER_TRACE_CBID_cuCtxSetCurrent,
    CUPTI_DRIVER_TRACE_CBID_cuCtxGetDevice,
    CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxGetState,
};

// A reading of one clock between two of the other is off by less, also under load.
constexpr TimeNs kClockAgreementNs = 10'000'000;

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size,
                               std::size_t* record_count_max) {
  ActivityBuffers::on_requested(buffer, size, record_count_max);
}

void CUPTIAPI buffer_completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t size,
                               std::size_t valid_bytes) {
  ActivityBuffers::on_completed(buffer, size, valid_bytes);
}

template <typename Value>
Status set_attribute(const CuptiApi& api, CUpti_ActivityAttribute attribute, const char* name,
                     Value value) {
  std::size_t size = sizeof value;
  const CUptiResult result = api.set_attribute(attribute, &size, &value);
  if (result == CUPTI_SUCCESS) return ok_status();
  return cupti_error(fmt::format("cannot set {} to {}", name, static_cast<std::int64_t>(value)),
                     result);
}

// The order matters: attributes before callbacks and kinds, all of it before the first context.
Status set_attributes(const CuptiApi& api, const CuptiOptions& options) {
  RETURN_IF_ERROR(set_attribute(api, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT,
                                "DEVICE_BUFFER_POOL_LIMIT",
                                static_cast<std::size_t>(options.device_buffer_count_max)));
  RETURN_IF_ERROR(set_attribute(api, CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER,
                                "PER_THREAD_ACTIVITY_BUFFER", std::uint8_t{1}));
  return set_attribute(api, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER,
                       "ZEROED_OUT_ACTIVITY_BUFFER", std::uint8_t{1});
}

void disable_kinds(const CuptiApi& api, std::size_t count) {
  // A kind that cannot be disabled was not enabled; there is nothing to be done about it.
  for (std::size_t i = 0; i < count; ++i) api.disable(kKinds[i].kind);
}

Status enable_kinds(const CuptiApi& api) {
  for (std::size_t i = 0; i < std::size(kKinds); ++i) {
    const CUptiResult result = api.enable(kKinds[i].kind);
    if (result == CUPTI_SUCCESS) continue;
    disable_kinds(api, i);
    return cupti_error(fmt::format("cannot enable records of kind {}", kKinds[i].name), result);
  }
  // A call that this driver does not know cannot be noisy either.
  for (const CUpti_CallbackId call : kQuietRuntimeCalls) api.enable_runtime_api(call, 0);
  for (const CUpti_CallbackId call : kQuietDriverCalls) api.enable_driver_api(call, 0);
  return ok_status();
}

Status check_clock(const CuptiApi& api) {
  const TimeNs before = realtime_now_ns();
  std::uint64_t stamp = 0;
  const CUptiResult result = api.timestamp(&stamp);
  const TimeNs after = realtime_now_ns();
  if (result != CUPTI_SUCCESS) return cupti_error("cannot read its clock", result);
  const auto read = static_cast<TimeNs>(stamp);
  if (read >= before - kClockAgreementNs && read <= after + kClockAgreementNs) return ok_status();
  return make_error(ErrorCode::unsupported,
                    "CUPTI: its clock says {} where CLOCK_REALTIME says {}: another profiler in "
                    "this process has given it a clock of its own; record without that one",
                    read, before);
}

}  // namespace

struct CuptiRecording::Impl {
  Impl(const CuptiApi& api_functions, record::Recorder& recorder_to, const CuptiOptions& how,
       std::unique_ptr<ActivityBuffers> pool, std::unique_ptr<ActivityDecoder> activity_decoder)
      : api(api_functions),
        recorder(recorder_to),
        options(how),
        buffers(std::move(pool)),
        decoder(std::move(activity_decoder)) {}

  Status pass(std::uint32_t flush_flag) REQUIRES(mutex);
  void decode_completed() REQUIRES(mutex);
  void count_dropped() REQUIRES(mutex);
  void run();

  const CuptiApi api;  // a copy: regions and the thread outlive whoever loaded it
  record::Recorder& recorder;
  const CuptiOptions options;
  // Set until stop() retires it; CUPTI's callbacks use it without `mutex`.
  std::unique_ptr<ActivityBuffers> buffers;

  // One pass at a time. Callbacks never take this one, so CUPTI may be called under it.
  mutable Mutex mutex;
  std::unique_ptr<ActivityDecoder> decoder GUARDED_BY(mutex);  // with the ring's producer side
  ClockSnapshots clock GUARDED_BY(mutex);
  TimeNs last_snapshot_ts GUARDED_BY(mutex) = 0;
  std::int64_t dropped_count GUARDED_BY(mutex) = 0;
  std::int64_t below_level_count GUARDED_BY(mutex) = 0;
  std::optional<Error> first_error GUARDED_BY(mutex);
  ActivityBufferCounts last_buffer_counts GUARDED_BY(mutex);
  bool stopped GUARDED_BY(mutex) = false;

  std::atomic<std::int64_t> failed_region_count{0};

  std::mutex wake_mutex;  // guards stop_asked
  std::condition_variable wake;
  bool stop_asked = false;
  std::thread thread;
};

CuptiRecording::CuptiRecording(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CuptiRecording::~CuptiRecording() {
  bool is_stopped;
  {
    MutexLock lock(impl_->mutex);
    is_stopped = impl_->stopped;
  }
  if (!is_stopped) static_cast<void>(stop());
}

Result<std::unique_ptr<CuptiRecording>> CuptiRecording::start(record::Recorder& recorder,
                                                              const CuptiOptions& options) {
  ASSIGN_OR_RETURN(const CuptiApi api, CuptiApi::load(options.library));
  return start(recorder, api, options);
}

Result<std::unique_ptr<CuptiRecording>> CuptiRecording::start(record::Recorder& recorder,
                                                              const CuptiApi& api,
                                                              const CuptiOptions& options) {
  RETURN_IF_ERROR(check_clock(api));
  // Tried before the ring is made, which the recorder keeps.
  RETURN_IF_ERROR(set_attributes(api, options));
  ASSIGN_OR_RETURN(auto pool, ActivityBuffers::create({.count_max = options.buffer_count_max}));
  record::Ring& ring = recorder.add_ring(options.ring_record_count);
  ASSIGN_OR_RETURN(auto decoder,
                   ActivityDecoder::create(api.next_record, recorder, ring,
                                           {.held_count_max = options.held_count_max}));
  auto impl = std::make_unique<Impl>(api, recorder, options, std::move(pool), std::move(decoder));
  if (!impl->buffers->try_attach()) {
    return make_error(ErrorCode::busy,
                      "CUPTI: this process records its GPU activity already: stop that recording "
                      "first");
  }
  Status status = ok_status();
  if (const CUptiResult result = api.register_callbacks(buffer_requested, buffer_completed);
      result != CUPTI_SUCCESS) {
    status = cupti_error("cannot register its callbacks", result);
  }
  if (status.ok()) {
    const auto period = static_cast<std::uint32_t>(options.flush_interval.count());
    if (const CUptiResult result = api.flush_period(period); result != CUPTI_SUCCESS) {
      status = cupti_error(fmt::format("cannot set its flush period to {} ms", period), result);
    }
  }
  {
    MutexLock lock(impl->mutex);
    impl->clock.add(take_clock_snapshot());
    impl->last_snapshot_ts = monotonic_now_ns();
  }
  if (status.ok()) status = enable_kinds(api);
  if (!status.ok()) {
    ActivityBuffers::retire(std::move(impl->buffers));
    return std::move(status).error();
  }
  std::unique_ptr<CuptiRecording> recording(new CuptiRecording(std::move(impl)));
  recording->impl_->thread = std::thread([impl_of = recording->impl_.get()] { impl_of->run(); });
  return recording;
}

void CuptiRecording::Impl::run() {
  std::unique_lock lock(wake_mutex);
  while (!wake.wait_for(lock, options.flush_interval, [this] { return stop_asked; })) {
    lock.unlock();
    {
      MutexLock pass_lock(mutex);
      static_cast<void>(pass(0));  // kept in first_error, which stop() returns
    }
    lock.lock();
  }
}

Status CuptiRecording::Impl::pass(std::uint32_t flush_flag) {
  const TimeNs now_ts = monotonic_now_ns();
  if (flush_flag != 0 ||
      now_ts - last_snapshot_ts >= std::chrono::nanoseconds(options.snapshot_interval).count()) {
    clock.add(take_clock_snapshot());
    last_snapshot_ts = now_ts;
  }
  const CUptiResult result = api.flush_all(flush_flag);
  decode_completed();
  count_dropped();
  if (result == CUPTI_SUCCESS) return ok_status();
  Error error = cupti_error("cannot flush its buffers", result);
  if (!first_error) first_error = error;
  return error;
}

void CuptiRecording::Impl::decode_completed() {
  const std::vector<CompletedBuffer> completed = buffers->take_completed();
  if (recorder.level() >= record::Level::all) {
    decoder->decode(completed, buffers->buffer_bytes(), clock);
  } else {
    below_level_count += static_cast<std::int64_t>(completed.size());
  }
  buffers->give_back(completed);
}

void CuptiRecording::Impl::count_dropped() {
  std::size_t dropped = 0;
  // Since the last time it was asked.
  const CUptiResult result = api.dropped_records(nullptr, 0, &dropped);
  if (result == CUPTI_SUCCESS)
    dropped_count += static_cast<std::int64_t>(dropped);
  else if (!first_error)
    first_error = cupti_error("cannot say how many records it dropped", result);
}

Status CuptiRecording::flush() {
  MutexLock lock(impl_->mutex);
  CHECK(!impl_->stopped);
  return impl_->pass(0);
}

Status CuptiRecording::stop() {
  {
    std::lock_guard lock(impl_->wake_mutex);
    impl_->stop_asked = true;
  }
  impl_->wake.notify_all();
  impl_->thread.join();
  MutexLock lock(impl_->mutex);
  CHECK(!impl_->stopped);
  impl_->stopped = true;
  static_cast<void>(impl_->pass(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));  // kept in first_error
  disable_kinds(impl_->api, std::size(kKinds));
  // Buffers that threads of CUPTI handed back between the flush and the end of tracing.
  static_cast<void>(impl_->pass(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  impl_->decoder->finish();
  impl_->last_buffer_counts = impl_->buffers->counts();
  ActivityBuffers::retire(std::move(impl_->buffers));
  if (impl_->first_error) return *impl_->first_error;
  return ok_status();
}

CuptiRecording::Region CuptiRecording::step_region(std::int32_t step) {
  CHECK_GE(step, 0);
  const auto id = kExternalIdMark | static_cast<std::uint64_t>(step);
  if (impl_->api.push_external_id(kStepCorrelation, id) == CUPTI_SUCCESS)
    return Region(this, kStepCorrelation);
  impl_->failed_region_count.fetch_add(1, std::memory_order_relaxed);
  return Region(nullptr, kStepCorrelation);
}

CuptiRecording::Region CuptiRecording::layer_region(LayerId layer) {
  CHECK_GE(index_of(layer), 0);
  const auto id = kExternalIdMark | static_cast<std::uint64_t>(index_of(layer));
  if (impl_->api.push_external_id(kLayerCorrelation, id) == CUPTI_SUCCESS)
    return Region(this, kLayerCorrelation);
  impl_->failed_region_count.fetch_add(1, std::memory_order_relaxed);
  return Region(nullptr, kLayerCorrelation);
}

CuptiRecording::Region::Region(Region&& other) noexcept
    : recording_(std::exchange(other.recording_, nullptr)), kind_(other.kind_) {}

CuptiRecording::Region::~Region() {
  if (recording_ == nullptr) return;
  std::uint64_t popped = 0;
  const auto kind = static_cast<CUpti_ExternalCorrelationKind>(kind_);
  if (recording_->impl_->api.pop_external_id(kind, &popped) != CUPTI_SUCCESS) {
    recording_->impl_->failed_region_count.fetch_add(1, std::memory_order_relaxed);
  }
}

std::vector<ClockSnapshot> CuptiRecording::clock_snapshots_since(std::size_t from) const {
  MutexLock lock(impl_->mutex);
  return impl_->clock.since(from);
}

std::vector<record::ClockReading> CuptiRecording::clock_readings_since(std::size_t from) const {
  std::vector<record::ClockReading> readings;
  for (const ClockSnapshot& snapshot : clock_snapshots_since(from)) {
    readings.push_back({snapshot.monotonic_ts, snapshot.realtime_ts});
  }
  return readings;
}

std::vector<CuptiCount> CuptiRecording::counts() const {
  MutexLock lock(impl_->mutex);
  const DecoderCounts& decoded = impl_->decoder->counts();
  const ActivityBufferCounts buffers =
      impl_->stopped ? impl_->last_buffer_counts : impl_->buffers->counts();
  return {
      {"cupti_records", decoded.decoded, false, "GPU activity records that were recorded"},
      {"cupti_buffers", buffers.completed, false, "activity buffers that CUPTI filled"},
      {"cupti_dropped", impl_->dropped_count, true,
       "records that CUPTI dropped, for lack of a buffer"},
      {"cupti_buffers_refused", buffers.refused, true,
       "buffers that CUPTI asked for beyond the bound, or for which there was no memory"},
      {"cupti_buffers_kept", buffers.lent, impl_->stopped,
       "buffers that are with CUPTI; after the end: with the records that it kept"},
      {"cupti_buffers_discarded", buffers.discarded + buffers.foreign, true,
       "buffers that came too late, or were not ours"},
      {"cupti_buffers_below_level", impl_->below_level_count, false,
       "buffers that were not decoded, because the recording level was below `all`"},
      {"cupti_other_kind", decoded.other_kind, false, "records of kinds that are not recorded"},
      {"cupti_untimed", decoded.untimed, true, "records that CUPTI had no time stamps for"},
      {"cupti_implausible", decoded.implausible, true, "records that say what cannot be"},
      {"cupti_unreadable_name", decoded.unreadable_name, true,
       "kernels whose name could not be read"},
      {"cupti_without_step", decoded.without_step, false,
       "GPU work that nobody said which step it was for"},
      {"cupti_given_up", decoded.given_up, true,
       "records that did not wait for their step, because too many waited"},
      {"cupti_lost_correlations", impl_->decoder->lost_correlation_count(), true,
       "calls that were forgotten, because too many were known"},
      {"cupti_foreign_ids", decoded.foreign_id, false, "external ids that somebody else pushed"},
      {"cupti_truncated_buffers", decoded.truncated_buffer, true,
       "buffers that end within a record"},
      {"cupti_damaged_buffers", decoded.damaged_buffer, true, "buffers that stop being records"},
      {"cupti_refused_bytes", decoded.refused_bytes, true, "bytes of those that were not decoded"},
      {"cupti_failed_regions", impl_->failed_region_count.load(std::memory_order_relaxed), true,
       "steps and layers that CUPTI would not begin or end"},
      {"cupti_clock_set", impl_->clock.clock_set_count(), false,
       "times that CLOCK_REALTIME, with which CUPTI stamps, was set"},
  };
}

std::string CuptiRecording::last_damage() const {
  MutexLock lock(impl_->mutex);
  return impl_->decoder->last_damage();
}

Result<std::string> probe(const std::string& library) {
  ASSIGN_OR_RETURN(const CuptiApi api, CuptiApi::load(library));
  std::uint32_t version = 0;
  if (const CUptiResult result = api.version(&version); result != CUPTI_SUCCESS)
    return cupti_error("cannot say its version", result);
  ASSIGN_OR_RETURN([[maybe_unused]] const RecordWalk walk, RecordWalk::create(api.next_record));
  constexpr CUpti_ActivityKind kKind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (const CUptiResult result = api.enable(kKind); result != CUPTI_SUCCESS) {
    return cupti_error(
        fmt::format("version {} is here, but cannot enable records of kernels", version), result);
  }
  api.disable(kKind);
  return fmt::format("version {}: records of kernels can be enabled", version);
}

}  // namespace sluice::cupti
