// The posix engine: worker threads that pread and pwrite, for kernels and containers that refuse
// io_uring.

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "storage/io/detail/attempt_hook.h"
#include "storage/io/detail/completion_signal.h"
#include "storage/io/detail/engines.h"
#include "storage/io/detail/slot_table.h"

namespace sluice::io {
namespace {

class PosixEngine final : public detail::KernelEngine {
 public:
  PosixEngine(detail::CompletionSignal signal, std::size_t queue_depth)
      : signal_(std::move(signal)), slots_(queue_depth), queued_(queue_depth) {}
  ~PosixEngine() override;

  Status start_workers(std::size_t thread_count);

  std::size_t submit(std::span<const IoRequest> requests) override;
  std::size_t reap(std::span<IoCompletion> completions, std::size_t at_least) override;
  // pread and pwrite have no use for it.
  Status register_buffers(std::span<const std::span<std::byte>>) override { return ok_status(); }

  int completion_fd() const override { return signal_.fd(); }
  std::size_t inflight_count() const override {
    const std::lock_guard lock(mutex_);
    return slots_.inflight_count();
  }
  std::size_t queue_depth() const override { return slots_.queue_depth(); }
  std::string_view name() const override { return "posix"; }

 private:
  void work();
  void transfer(detail::Transfer& transfer);

  const detail::CompletionSignal signal_;  // raised exactly while something has finished

  mutable std::mutex mutex_;  // guards what follows, but not the transfer a worker works on
  std::condition_variable work_changed_;
  std::condition_variable finished_changed_;
  detail::SlotTable slots_;
  detail::IndexRing queued_;
  bool is_stopping_ = false;

  std::vector<std::thread> workers_;
};

// Transfers that a worker has begun are finished, since they use the callers' memory; those still
// queued are dropped.
PosixEngine::~PosixEngine() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  work_changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

Status PosixEngine::start_workers(std::size_t thread_count) {
  workers_.reserve(thread_count);
  // std::thread reports a refusal by exception only; it ends here.
  try {
    while (workers_.size() < thread_count) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& refusal) {
    return make_error(ErrorCode::memory,
                      "started {} of {} worker threads of the posix engine, then: {}; lower "
                      "thread_count or raise `ulimit -u`",
                      workers_.size(), thread_count, refusal.what());
  }
  return ok_status();
}

std::size_t PosixEngine::submit(std::span<const IoRequest> requests) {
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = std::min(requests.size(), slots_.room_count());
    for (const IoRequest& request : requests.first(count)) {
      const auto [slot, ready] = slots_.take(request);
      if (ready) queued_.push(slot);
    }
    if (slots_.finished_count() > 0) signal_.raise();
  }
  work_changed_.notify_all();
  return count;
}

std::size_t PosixEngine::reap(std::span<IoCompletion> completions, std::size_t at_least) {
  std::unique_lock lock(mutex_);
  const std::size_t wanted = std::min({at_least, completions.size(), slots_.inflight_count()});
  finished_changed_.wait(lock, [&] { return slots_.finished_count() >= wanted; });
  const std::size_t count = slots_.hand_out(completions);
  signal_.clear();
  if (slots_.finished_count() > 0) signal_.raise();
  return count;
}

void PosixEngine::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_changed_.wait(lock, [&] { return is_stopping_ || !queued_.empty(); });
    if (is_stopping_) return;
    const std::uint32_t slot = queued_.pop();
    lock.unlock();
    transfer(slots_.transfer(slot));
    Status status = slots_.transfer(slot).status();
    lock.lock();
    slots_.finish(slot, std::move(status));
    signal_.raise();
    finished_changed_.notify_one();
  }
}

void PosixEngine::transfer(detail::Transfer& transfer) {
  const IoRequest& request = transfer.request();
  for (auto next = detail::Transfer::Next::attempt; next == detail::Transfer::Next::attempt;) {
    detail::Attempt attempt = transfer.next_attempt();
    const auto answer = before_attempt(request.user_data, attempt);
    next = transfer.take_result(answer.has_value() ? *answer
                                                   : detail::blocking_attempt(request, attempt));
  }
}

}  // namespace

Result<std::unique_ptr<IoEngine>> detail::open_posix_engine(const IoEngineOptions& options) {
  ASSIGN_OR_RETURN(CompletionSignal signal, CompletionSignal::open());
  auto engine = std::make_unique<PosixEngine>(std::move(signal), options.queue_depth);
  RETURN_IF_ERROR(engine->start_workers(options.thread_count));
  return engine;
}

}  // namespace sluice::io
