#include "storage/state/detail/parallel_sync.h"

#include <exception>
#include <utility>

namespace sluice::state::detail {

ParallelSync::ParallelSync(Disk& disk, std::span<const io::File> files)
    : disk_(disk),
      files_(files),
      outcomes_(files.size()),
      next_index_(files.size()),
      done_count_(files.size()) {
  try {
    for (std::size_t i = 1; i < files.size(); ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // A thread was refused. No destructor runs, and those that have begun may not outlive this.
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    throw;
  }
}

ParallelSync::~ParallelSync() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Status ParallelSync::sync_all() {
  std::unique_lock lock(mutex_);
  next_index_ = 0;
  done_count_ = 0;
  start_.notify_all();
  while (next_index_ < files_.size()) sync_one(lock);
  done_.wait(lock, [this] { return done_count_ == files_.size(); });
  for (Status& outcome : outcomes_)
    if (!outcome.ok()) return std::move(outcome).error();
  return ok_status();
}

void ParallelSync::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    start_.wait(lock, [this] { return stopping_ || next_index_ < files_.size(); });
    if (stopping_) return;
    sync_one(lock);
  }
}

void ParallelSync::sync_one(std::unique_lock<std::mutex>& lock) {
  const std::size_t index = next_index_++;
  lock.unlock();
  Status outcome = disk_.sync(files_[index]);
  lock.lock();
  outcomes_[index] = std::move(outcome);
  if (++done_count_ == files_.size()) done_.notify_one();
}

}  // namespace sluice::state::detail
