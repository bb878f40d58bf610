#include "core/session/run_clock.h"

#include "base/log.h"
#include "base/process_limits.h"
#include "core/runtime/byte_counters.h"
#include "core/runtime/clocks.h"
#include "core/runtime/recording.h"
#include "core/runtime/work_executor.h"

namespace sluice::session {
namespace {

int worker_count(const settings::ResourceConfig& resources) {
  const std::int64_t asked =
      resources.worker_threads > 0 ? resources.worker_threads : resources.threads;
  return asked > 0 ? static_cast<int>(asked) : usable_processor_count();
}

runtime::IoLanes::Options lanes_of(const settings::StorageConfig& storage) {
  return {storage.io_bytes, storage.queue_depth};
}

}  // namespace

RunClock::RunClock() = default;
RunClock::RunClock(RunClock&&) noexcept = default;
RunClock& RunClock::operator=(RunClock&&) noexcept = default;
RunClock::~RunClock() = default;

Result<RunClock> RunClock::open(const settings::RunConfig& config,
                                const platform::Platform& platform, record::Recorder* recorder,
                                const WrapEngine& wrap_engine) {
  RunClock opened;
  io::IoEngineOptions engine_options;
  engine_options.kind = config.storage.engine;
  engine_options.queue_depth = 4096;  // of all lanes, whose own depth is a knob
  ASSIGN_OR_RETURN(std::unique_ptr<io::IoEngine> engine, io::open_io_engine(engine_options));
  opened.engine_ = engine.get();
  if (wrap_engine) engine = wrap_engine(std::move(engine));
  runtime::WorkExecutor::Options executor_options;
  executor_options.lanes = lanes_of(config.storage);
  executor_options.host_worker_count = worker_count(config.resources);
  ASSIGN_OR_RETURN(std::unique_ptr<runtime::WorkExecutor> executor,
                   runtime::WorkExecutor::make(std::move(engine), executor_options));
  opened.executor_ = executor.get();
  std::unique_ptr<runtime::Clock> clock;
  if (config.clock.kind == settings::ClockKind::emulated) {
    auto emulated = std::make_unique<runtime::EmulatedClock>(std::move(executor), platform,
                                                             config.clock.time_scale);
    opened.emulated_ = emulated.get();
    clock = std::move(emulated);
  } else {
    clock = std::make_unique<runtime::RealClock>(std::move(executor));
  }
  opened.runtime_ = std::make_unique<runtime::Runtime>(std::move(clock));
  opened.bytes_ = std::make_unique<runtime::ByteCounters>(platform.links.size());
  opened.runtime_->add_sink(opened.bytes_.get());
  if (recorder != nullptr) {
    opened.recording_ = std::make_unique<runtime::RecordingSink>(*recorder, platform);
    opened.runtime_->add_sink(opened.recording_.get());
  }
  return opened;
}

// Steps count from 0 there.
void RunClock::record_step(const StepReport& step, TimeNs start_ns) {
  if (recording_ == nullptr) return;
  record::StepRecord record;
  record.skipped = step.skipped;
  record.step = static_cast<std::int32_t>(step.step - 1);
  record.ts = start_ns;
  record.dur = step.total_ns;
  record.tokens = step.tokens;
  record.loss = step.loss;
  record.grad_norm = step.grad_norm;
  record.loss_scale = step.loss_scale;
  record.lr = step.lr;
  recording_->record_step(record);
}

void RunClock::set_lanes(const settings::StorageConfig& storage) {
  executor_->set_lanes(lanes_of(storage));
}

void RunClock::register_buffers(std::span<const std::span<std::byte>> regions) {
  const Status registered = engine_->register_buffers(regions);
  if (registered.ok()) return;
  log_warning(
      fmt::format("transfers run without registered buffers: {}", registered.error().message()));
}

}  // namespace sluice::session
