#include "profiler/collect/collector.h"

#include <pthread.h>

#include <utility>

#include "base/check.h"
#include "profiler/collect/drain.h"
#include "storage/rundb/sample_rows.h"

namespace sluice::collect {

Collector::Collector(std::unique_ptr<Drain> drain, const CollectorOptions& options)
    : drain_(std::move(drain)),
      options_(options),
      flush_interval_(options.flush_interval),
      thread_([this] { run(); }) {}

Result<std::unique_ptr<Collector>> Collector::start(record::Recorder& recorder,
                                                    std::unique_ptr<rundb::Writer> writer,
                                                    const RunFacts& facts,
                                                    const CollectorOptions& options) {
  auto drain = std::make_unique<Drain>(recorder, std::move(writer), options.batch_record_count,
                                       options.records_itself);
  RETURN_IF_ERROR(drain->write_facts(facts));
  return std::unique_ptr<Collector>(new Collector(std::move(drain), options));
}

Collector::~Collector() {
  if (thread_.joinable()) (void)stop();
}

void Collector::run() {
  ::pthread_setname_np(::pthread_self(), "collector");
  if (options_.thread_begins != nullptr) options_.thread_begins();
  std::unique_lock lock(mutex_);
  while (!stop_asked_ || flush_asked_ > flush_done_) {
    wake_.wait_for(lock, flush_interval_,
                   [this] { return stop_asked_ || flush_asked_ > flush_done_; });
    lock.unlock();
    const std::lock_guard pass(pass_mutex_);
    lock.lock();
    const std::uint64_t answers = flush_asked_;
    hand_over();
    lock.unlock();
    Status status = drain_->pass();
    if (options_.records_itself) drain_->watch_cost(options_);
    lock.lock();
    status_ = std::move(status);
    flush_done_ = answers;
    flushed_.notify_all();
  }
}

void Collector::hand_over() {
  for (const RunFacts& facts : std::exchange(declared_, {})) drain_->declare(facts);
  drain_->add(std::move(added_));
  added_.knob_changes.clear();
  added_.verdicts.clear();
  added_.modes.clear();
  added_.clock_offsets.clear();
  added_.lateness.clear();
  added_.validations.clear();
  added_.samples = {};
}

void Collector::add(std::span<const rundb::KnobChangeRow> changes) {
  const std::lock_guard lock(mutex_);
  added_.knob_changes.insert(added_.knob_changes.end(), changes.begin(), changes.end());
}

void Collector::add(std::span<const rundb::VerdictRow> verdicts) {
  const std::lock_guard lock(mutex_);
  added_.verdicts.insert(added_.verdicts.end(), verdicts.begin(), verdicts.end());
}

void Collector::add(const rundb::ModeRow& mode) {
  const std::lock_guard lock(mutex_);
  added_.modes.push_back(mode);
}

void Collector::add(const rundb::ClockOffsetRow& offset) {
  const std::lock_guard lock(mutex_);
  added_.clock_offsets.push_back(offset);
}

void Collector::add(std::span<const rundb::LatenessRow> lateness) {
  const std::lock_guard lock(mutex_);
  added_.lateness.insert(added_.lateness.end(), lateness.begin(), lateness.end());
}

void Collector::add(const rundb::ValidationRow& validation) {
  const std::lock_guard lock(mutex_);
  added_.validations.push_back(validation);
}

void Collector::add(rundb::SampleRows&& samples) {
  const std::lock_guard lock(mutex_);
  rundb::move_behind(added_.samples, std::move(samples));
}

Status Collector::declare(const RunFacts& facts) {
  std::unique_lock lock(mutex_);
  if (stop_asked_) return make_error(ErrorCode::cancelled, "the recording has ended");
  declared_.push_back(facts);
  return flushed(lock);
}

void Collector::attach(const record::SideRecorder& side) { drain_->attach(side); }

std::uint64_t Collector::unwritten_count() const { return drain_->unwritten_count(); }

void Collector::set_flush_interval(std::chrono::milliseconds interval) {
  const std::lock_guard lock(mutex_);
  if (interval == flush_interval_) return;
  flush_interval_ = interval;
  ++flush_asked_;
  wake_.notify_one();
}

void Collector::hold_for_fork() {
  pass_mutex_.lock();
  mutex_.lock();
}

void Collector::release_after_fork() {
  mutex_.unlock();
  pass_mutex_.unlock();
}

Status Collector::flush() {
  std::unique_lock lock(mutex_);
  CHECK(!stop_asked_);
  return flushed(lock);
}

Status Collector::flushed(std::unique_lock<std::mutex>& lock) {
  const std::uint64_t asked = ++flush_asked_;
  wake_.notify_one();
  flushed_.wait(lock, [&] { return flush_done_ >= asked; });
  return status_;
}

Status Collector::stop() {
  {
    const std::lock_guard lock(mutex_);
    CHECK(!stop_asked_);
    stop_asked_ = true;
  }
  wake_.notify_one();
  thread_.join();
  {
    const std::lock_guard lock(mutex_);
    hand_over();
  }
  Status status = drain_->finish();
  const std::lock_guard lock(mutex_);
  status_ = std::move(status);
  return status_;
}

Status Collector::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

}  // namespace sluice::collect
