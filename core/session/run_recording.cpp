#include "core/session/run_recording.h"

#include <filesystem>

#include "base/log.h"
#include "core/plan/run_plan.h"
#include "core/runtime/runtime.h"
#include "core/session/gpu_recording.h"
#include "core/session/open_run.h"
#include "core/session/program_recording.h"
#include "core/session/run_clock.h"
#include "core/session/run_memory.h"
#include "core/session/run_record.h"
#include "core/session/run_state.h"
#include "profiler/sample/host_sampler.h"

namespace sluice::session {
namespace {

// How far the database is behind the run where a window or another program follows it, and where
// nobody does: then it is what a crash loses, and the price of a commit is paid less often.
constexpr std::chrono::milliseconds kFlushWatched{100};
constexpr std::chrono::milliseconds kFlushUnwatched{250};

Result<std::unique_ptr<rundb::Writer>> open_database(const std::string& path, StartFrom start,
                                                     std::int64_t first_step) {
  RETURN_IF_ERROR(make_folder_of(path));
  if (start == StartFrom::last_commit && std::filesystem::exists(path)) {
    return rundb::Writer::open_append(path, first_step);
  }
  return rundb::Writer::create(path, rundb::IfExists::replace);
}

void add_memory(const plan::MemoryPlan& memory, std::vector<rundb::MetaRow>& meta) {
  meta.push_back({"host_memory_cap", fmt::format("{}", memory.cap_bytes)});
  meta.push_back({"host_memory_limit",
                  fmt::format("{} ({})", format_bytes(memory.cap_bytes), memory.cap_what)});
}

}  // namespace

RunRecording::RunRecording(const settings::RunConfig& config)
    : is_on_(config.record != record::Level::off), database_(config.files.database) {
  recorder_.set_level(config.record);
  program_ = std::make_unique<ProgramRecording>(recorder());
}

RunRecording::~RunRecording() {
  if (sampler_) sampler_->stop();  // it hands its rows to the collector
}

Result<std::unique_ptr<RunRecording>> RunRecording::prepare(const settings::RunConfig& config) {
  std::unique_ptr<RunRecording> recording(new RunRecording(config));
  if (recording->is_on_) RETURN_IF_ERROR(rundb::Writer::check_path(config.files.database));
  if (config.record_samples > 0) {
    Result<std::unique_ptr<sample::HostSampler>> sampler =
        sample::HostSampler::open({.samples_per_second = static_cast<int>(config.record_samples)});
    if (!sampler.ok()) {
      return make_error(sampler.error().code(), "{}; record_samples=0 does without",
                        sampler.error().message());
    }
    recording->sampler_ = *std::move(sampler);
  }
  recording->gpu_ = GpuRecording::start_if_asked(config, recording->recorder_);
  return recording;
}

model::LaunchRegion RunRecording::launch_region() {
  return gpu_ != nullptr ? gpu_->region() : model::LaunchRegion();
}

Status RunRecording::open(OpenRun& run, const Facts& facts) {
  if (!is_on_) return ok_status();
  const settings::RunConfig& config = run.plan().config;
  first_step_ = run.state().step();
  const TimeNs now_ns = run.runtime().now_ns();
  std::vector<rundb::KnobChangeRow> changes;
  if (facts.start == StartFrom::last_commit) {
    changes = changes_of_resume(database_, config, first_step_, now_ns);
    add_recipe_changes(run.state().recipe_changes(), first_step_, now_ns, changes);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<rundb::Writer> writer,
                   open_database(database_, facts.start, first_step_));
  writer->set_retention({config.record_steps, config.record_size_bytes});
  collect::RunFacts rows =
      run_facts(run.plan(), ModeClock::of_settings, recorder_, run.state().store().layout());
  add_memory(run.memory().host, rows.meta);
  rows.meta.insert(rows.meta.end(), facts.meta.begin(), facts.meta.end());
  add_resume_knobs(changes, rows.knobs);
  ASSIGN_OR_RETURN(collector_, collect::Collector::start(recorder_, std::move(writer), rows,
                                                         {.flush_interval = kFlushUnwatched}));
  if (gpu_) collector_->attach(gpu_->side());
  if (sampler_) {
    collector_->attach(*sampler_);
    RETURN_IF_ERROR(sampler_->start([collector = collector_.get()](rundb::SampleRows&& taken) {
      collector->add(std::move(taken));
    }));
  }
  collector_->add(changes);
  collector_->add(mode_row(config, facts.hardware, first_step_, now_ns));
  changes_ = std::make_unique<RunRecorder>(run.plan(), facts.hardware, *collector_);
  emulated_ = run.clock().emulated();
  return ok_status();
}

void RunRecording::add_observers(RunHooks& hooks) {
  if (changes_) hooks.observers.push_back(changes_.get());
  if (collector_ && emulated_ != nullptr) {
    lateness_ = std::make_unique<LatenessRecorder>(*emulated_, *collector_, first_step_);
    hooks.observers.push_back(lateness_.get());
  }
  if (gpu_ == nullptr) return;
  gpu_->set_step(first_step_);
  hooks.observers.push_back(gpu_.get());
}

void RunRecording::set_watched(bool watched) {
  if (collector_) collector_->set_flush_interval(watched ? kFlushWatched : kFlushUnwatched);
}

void RunRecording::record_rest() {
  if (lateness_) lateness_->record();
}

void RunRecording::close() {
  if (gpu_) {
    const Status stopped = gpu_->stop();
    if (!stopped.ok()) log_warning("recording of the GPU: " + stopped.error().message());
  }
  if (!collector_) return;
  if (sampler_) sampler_->stop();
  // A reader can compute verdicts as well, so a lack of them is no reason to fail.
  const Status judged = record_verdicts(*collector_, database_, first_step_);
  const Status stopped = collector_->stop();
  if (!stopped.ok()) log_warning("recording stopped: " + stopped.error().message());
  if (stopped.ok() && !judged.ok()) {
    log_warning("the database has no verdicts: " + judged.error().message());
  }
}

}  // namespace sluice::session
