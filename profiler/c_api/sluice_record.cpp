#include "profiler/c_api/sluice_record.h"

#include <limits>
#include <optional>
#include <utility>

#include "profiler/c_api/recording_state.h"
#include "profiler/c_api/stage_meaning.h"
#include "profiler/record/scoped_span.h"

namespace {

using sluice::c_api::RecordingState;
using sluice::record::Level;
namespace record = sluice::record;

static_assert(static_cast<int>(Level::off) == SLUICE_OFF);
static_assert(static_cast<int>(Level::steps) == SLUICE_STEPS);
static_assert(static_cast<int>(Level::transfers) == SLUICE_TRANSFERS);
static_assert(static_cast<int>(Level::all) == SLUICE_ALL);
static_assert(static_cast<std::uint32_t>(record::kNoTrack) == SLUICE_NO_TRACK);
static_assert(static_cast<std::uint64_t>(record::kNoSpan) == SLUICE_NO_SPAN);

thread_local std::string last_error;

int remember(const sluice::Status& status) {
  if (status.ok()) return 0;
  last_error = status.error().message();
  return -1;
}

const char* or_empty(const char* text) { return text == nullptr ? "" : text; }

template <typename T, typename Id>
T given(const sluice::Result<Id>& result, T none) {
  if (result.ok()) return static_cast<T>(*result);
  last_error = result.error().message();
  return none;
}

}  // namespace

struct sluice_recording {
  std::shared_ptr<RecordingState> state;
};

const char* sluice_record_error(void) { return last_error.c_str(); }

sluice_recording* sluice_record_start(const char* path, const char* name, sluice_level level) {
  if (level < SLUICE_OFF || level > SLUICE_ALL) {
    last_error = fmt::format("sluice_record_start: there is no level {}", level);
    return nullptr;
  }
  auto state = RecordingState::start(or_empty(path), or_empty(name), static_cast<Level>(level));
  if (!state.ok()) {
    last_error = state.error().message();
    return nullptr;
  }
  return new sluice_recording{std::move(*state)};
}

int sluice_record_stop(sluice_recording* recording) {
  if (recording == nullptr) return 0;
  const int result = remember(recording->state->collector().stop());
  delete recording;
  return result;
}

int sluice_record_flush(sluice_recording* recording) {
  return remember(recording->state->collector().flush());
}

void sluice_record_set_level(sluice_recording* recording, sluice_level level, const char* who) {
  if (level < SLUICE_OFF || level > SLUICE_ALL) return;
  recording->state->recorder().set_level(static_cast<Level>(level), or_empty(who));
}

sluice_level sluice_record_level(const sluice_recording* recording) {
  return static_cast<sluice_level>(recording->state->recorder().level());
}

uint64_t sluice_record_lost_count(const sluice_recording* recording) {
  return recording->state->lost_count();
}

sluice_track sluice_record_track(sluice_recording* recording, sluice_track parent,
                                 const char* name) {
  return static_cast<sluice_track>(
      recording->state->add_track(record::TrackId{parent}, "thread", or_empty(name)));
}

sluice_track sluice_record_counter_track(sluice_recording* recording, sluice_track parent,
                                         const char* name) {
  return static_cast<sluice_track>(
      recording->state->add_track(record::TrackId{parent}, "counter", or_empty(name)));
}

sluice_name sluice_record_name(sluice_recording* recording, const char* text) {
  return static_cast<sluice_name>(recording->state->intern(or_empty(text)));
}

int32_t sluice_record_version(void) { return SLUICE_RECORD_VERSION; }

sluice_name sluice_record_stage(sluice_recording* recording, const char* name,
                                sluice_stage meaning) {
  std::optional<sluice::rundb::StageRow> row = sluice::c_api::stage_row(meaning);
  if (!row) {
    last_error = fmt::format(
        "sluice_record_stage: {} has a value that means nothing: kind {}, "
        "place {}, phase {}, cause {}",
        or_empty(name), meaning.kind, meaning.place, meaning.phase, meaning.cause);
    return SLUICE_NO_NAME;
  }
  RecordingState& state = *recording->state;
  const record::NameId id = state.intern(or_empty(name));
  const int done = remember(state.declarations().stage(state.collector(), id, std::move(*row)));
  return done == 0 ? static_cast<sluice_name>(id) : SLUICE_NO_NAME;
}

sluice_device sluice_record_device(sluice_recording* recording, const char* name,
                                   double read_bytes_per_s, double write_bytes_per_s) {
  RecordingState& state = *recording->state;
  return given(state.declarations().device(state.collector(), or_empty(name),
                                           {read_bytes_per_s, write_bytes_per_s}),
               SLUICE_NO_DEVICE);
}

sluice_link sluice_record_link(sluice_recording* recording, const char* name,
                               double read_bytes_per_s, double write_bytes_per_s) {
  RecordingState& state = *recording->state;
  return given(state.declarations().link(state.collector(), or_empty(name),
                                         {read_bytes_per_s, write_bytes_per_s}),
               SLUICE_NO_LINK);
}

sluice_track sluice_record_transfer_track(sluice_recording* recording, sluice_track parent,
                                          const char* name, sluice_device device, sluice_link link,
                                          int32_t direction) {
  if (direction != SLUICE_OUT_OF_DRIVE && direction != SLUICE_INTO_DRIVE) {
    last_error = fmt::format("sluice_record_transfer_track: there is no direction {}", direction);
    return SLUICE_NO_TRACK;
  }
  return given(recording->state->add_transfer_track(
                   record::TrackId{parent}, or_empty(name), device, link,
                   direction == SLUICE_OUT_OF_DRIVE ? record::LinkDirection::read
                                                    : record::LinkDirection::write),
               SLUICE_NO_TRACK);
}

int64_t sluice_record_now(void) { return record::span_now_ns(); }

sluice_span sluice_span_begin(sluice_recording* recording, sluice_track track, sluice_name name) {
  if (recording->state->recorder().level() < Level::transfers) return {-1, track, name};
  return {record::span_now_ns(), track, name};
}

sluice_span_ref sluice_span_end(sluice_recording* recording, sluice_span span, int64_t bytes) {
  if (span.begin_ts < 0) return SLUICE_NO_SPAN;
  return sluice_span_at(recording, span.track, span.name, span.begin_ts, span.begin_ts,
                        record::span_now_ns(), bytes);
}

sluice_span_ref sluice_span_at(sluice_recording* recording, sluice_track track, sluice_name name,
                               int64_t submit_ts, int64_t begin_ts, int64_t end_ts, int64_t bytes) {
  RecordingState& state = *recording->state;
  if (state.recorder().level() < Level::transfers) return SLUICE_NO_SPAN;
  record::SpanRecord span;
  span.name = record::NameId{name};
  span.track = record::TrackId{track};
  span.device = state.declarations().device_of(span.track);
  span.step = state.step();
  span.submit_ts = submit_ts;
  span.ts = begin_ts;
  span.dur = end_ts - begin_ts;
  span.bytes = bytes;
  return static_cast<sluice_span_ref>(state.push_span(recording->state, span));
}

sluice_span_ref sluice_instant(sluice_recording* recording, sluice_track track, sluice_name name) {
  const std::int64_t ts = record::span_now_ns();
  return sluice_span_at(recording, track, name, ts, ts, ts, 0);
}

void sluice_counter(sluice_recording* recording, sluice_track counter, double value) {
  RecordingState& state = *recording->state;
  if (state.recorder().level() < Level::all) return;
  state.push(recording->state,
             record::CounterRecord{
                 .track = record::TrackId{counter}, .ts = record::span_now_ns(), .value = value});
}

void sluice_flow(sluice_recording* recording, sluice_span_ref from, sluice_span_ref to) {
  RecordingState& state = *recording->state;
  if (state.recorder().level() < Level::all) return;
  if (from == SLUICE_NO_SPAN || to == SLUICE_NO_SPAN) return;
  state.push(recording->state,
             record::FlowRecord{.from = record::SpanRef{from}, .to = record::SpanRef{to}});
}

void sluice_step_begin(sluice_recording* recording, int32_t number) {
  recording->state->begin_step(number);
}

void sluice_step_end(sluice_recording* recording) {
  sluice_step_end_trained(recording, 0, std::numeric_limits<double>::quiet_NaN());
}

void sluice_step_end_trained(sluice_recording* recording, int64_t tokens, double loss) {
  record::StepRecord step;
  step.tokens = tokens;
  step.loss = loss;
  step.grad_norm = step.loss_scale = step.lr = std::numeric_limits<double>::quiet_NaN();
  recording->state->end_step(recording->state, step);
}
