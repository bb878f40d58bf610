#include "profiler/collect/collector.h"

#include <utility>

#include "base/check.h"
#include "profiler/collect/drain.h"

namespace sluice::collect {

Collector::Collector(std::unique_ptr<Drain> drain, const CollectorOptions& options)
    : drain_(std::move(drain)), options_(options), thread_([this] { run(); }) {}

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
  std::unique_lock lock(mutex_);
  while (!stop_asked_ || flush_asked_ > flush_done_) {
    wake_.wait_for(lock, options_.flush_interval,
                   [this] { return stop_asked_ || flush_asked_ > flush_done_; });
    const std::uint64_t answers = flush_asked_;
    lock.unlock();
    Status status = drain_->pass();
    if (options_.records_itself) drain_->watch_cost(options_);
    lock.lock();
    status_ = std::move(status);
    flush_done_ = answers;
    flushed_.notify_all();
  }
}

Status Collector::flush() {
  std::unique_lock lock(mutex_);
  CHECK(!stop_asked_);
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
