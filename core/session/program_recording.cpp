#include "core/session/program_recording.h"

#include <algorithm>

#include "core/stages/stage.h"
#include "profiler/record/scoped_span.h"

namespace sluice::session {
namespace {

// A step has a span for each tensor, and for each module that is asked for.
constexpr std::size_t kRingRecords = 1 << 15;
// Tracks stand in one another; deeper modules share the last.
constexpr int kDepthMax = 15;

stages::Stage stage_of(Work work) {
  constexpr std::array<stages::Stage, 5> kStageOf = {
      stages::Stage::host_work, stages::Stage::forward, stages::Stage::backward,
      stages::Stage::parameters_in, stages::Stage::validate};
  return kStageOf.at(static_cast<std::size_t>(work));
}

}  // namespace

ProgramRecording::ProgramRecording(record::Recorder* recorder) : recorder_(recorder) {
  if (recorder_ == nullptr) return;
  // The tracks of core/runtime/recording.h, whose names these are.
  compute_ = recorder_->add_track(record::kNoTrack, "compute", "compute");
  host_ = recorder_->add_track(record::kNoTrack, "host", "host");
  MutexLock lock(mutex_);
  ring_ = &recorder_->add_ring(kRingRecords);
}

void ProgramRecording::record(const WorkSpan& span, LayerId layer, std::int32_t step) {
  if (span.work == Work::forward) forward_end_ns_ = span.end_ns;
  if (recorder_ == nullptr || recorder_->level() < record::Level::transfers) return;
  record::SpanRecord made;
  made.layer = static_cast<std::int16_t>(index_of(layer));
  made.step = step;
  made.submit_ts = made.ts = span.begin_ns;
  made.dur = std::max<TimeNs>(0, span.end_ns - span.begin_ns);
  MutexLock lock(mutex_);
  if (span.work == Work::module) {
    made.name = recorder_->intern(span.name);
    made.track = module_track(std::clamp(span.depth, 0, kDepthMax));
  } else {
    const stages::Stage stage = stage_of(span.work);
    const bool computes = stages::stage_info(stage).place == stages::StagePlace::compute;
    made.name = recorder_->intern(stages::stage_name(stage));
    made.track = computes ? compute_ : host_;
  }
  ring_->try_push(made);  // a full ring counts what it drops
}

record::TrackId ProgramRecording::module_track(int depth) {
  while (std::ssize(modules_) <= depth) {
    const bool is_first = modules_.empty();
    modules_.push_back(recorder_->add_track(
        is_first ? compute_ : modules_.back(), "module",
        is_first ? std::string("modules") : fmt::format("modules {} deep", modules_.size() + 1)));
  }
  return modules_[static_cast<std::size_t>(depth)];
}

void ProgramRecording::count(std::string_view name, double value) {
  if (recorder_ == nullptr || recorder_->level() < record::Level::all) return;
  const record::TrackId track = recorder_->add_track(compute_, "counter", name);
  MutexLock lock(mutex_);
  ring_->try_push(
      record::CounterRecord{.track = track, .ts = record::span_now_ns(), .value = value});
}

}  // namespace sluice::session
