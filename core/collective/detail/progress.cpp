#include "core/collective/detail/progress.h"

#include "base/check.h"
#include "base/clock.h"

namespace sluice::collective::detail {

Result<std::unique_ptr<Progress>> Progress::open(const Communicator::TransportOpener& opener,
                                                 const CommunicatorOptions& options) {
  std::unique_ptr<Progress> progress(new Progress(options));
  Pending opened;
  progress->thread_ = std::thread([&, self = progress.get()] { self->run(opener, opened); });
  RETURN_IF_ERROR(opened.wait());
  return progress;
}

Progress::~Progress() {
  if (thread_.joinable()) static_cast<void>(stop(Closing::leaves));
}

void Progress::run(const Communicator::TransportOpener& opener, Pending& opened) {
  Result<std::unique_ptr<Transport>> transport = opener();
  if (!transport.ok()) return opened.note(transport.error());
  ProgressEngine engine(**transport, slots_, options_);
  opened.note(ok_status());
  const Closing closing = make_progress(**transport, engine);
  close_outcome_ = engine.outcome();
  if (closing == Closing::leaves) (*transport)->abandon();
  if (closing == Closing::closes && close_outcome_.ok()) close_outcome_ = (*transport)->close();
}

// Until the communicator closes and nothing is under way, or it leaves.
Progress::Closing Progress::make_progress(Transport& transport, ProgressEngine& engine) {
  using Moved = ProgressEngine::Moved;
  for (Moved moved = Moved::idle;; moved = engine.step(monotonic_now_ns())) {
    CallQueue calls;
    Errand* errand = nullptr;
    {
      MutexLock lock(mutex_);
      const bool has_nothing = calls_.is_empty() && errand_ == nullptr;
      if (closing_ == Closing::leaves) return closing_;
      if (moved == Moved::idle && has_nothing && closing_ == Closing::closes) return closing_;
      if (moved == Moved::idle && has_nothing) wait_for_more(transport);
      std::swap(calls, calls_);
      std::swap(errand, errand_);
    }
    if (errand != nullptr) errand->done.note((*errand->action)(transport, engine));
    if (moved == Moved::nothing && calls.is_empty()) transport.wait();
    while (!calls.is_empty()) engine.accept(calls.pop(), monotonic_now_ns());
  }
}

// Alone there is nobody whose questions to look for.
void Progress::wait_for_more(const Transport& transport) {
  if (transport.rank_count() == 1) {
    handed_.wait(mutex_);
  } else {
    handed_.wait_for(mutex_, kIdleWait);
  }
}

void Progress::hand(CallState* call) {
  CHECK(thread_.joinable());  // not closed
  MutexLock lock(mutex_);
  calls_.push(call);
  handed_.notify_one();
}

Status Progress::do_there(const std::function<Status(Transport&, ProgressEngine&)>& action) {
  CHECK(thread_.joinable());  // not closed
  Errand errand{&action, {}};
  {
    MutexLock lock(mutex_);
    errand_ = &errand;
    handed_.notify_one();
  }
  return errand.done.wait();
}

Status Progress::close() { return stop(Closing::closes); }

Status Progress::stop(Closing closing) {
  CHECK(thread_.joinable());  // once
  {
    MutexLock lock(mutex_);
    closing_ = closing;
    handed_.notify_one();
  }
  thread_.join();
  return close_outcome_;
}

}  // namespace sluice::collective::detail
