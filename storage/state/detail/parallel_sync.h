#pragma once
// fdatasync of several devices at once: each may take milliseconds, and they do not share anything.
// Threads are started once, so that a commit starts and allocates nothing.
//
// Thread contract: one owner calls sync_all.

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/status.h"
#include "storage/io/file.h"
#include "storage/state/detail/disk.h"

namespace sluice::state::detail {

class ParallelSync {
 public:
  // For `files`, which live as long as this object; the calling thread does one of them itself.
  ParallelSync(Disk& disk, std::span<const io::File> files);
  ~ParallelSync();
  ParallelSync(const ParallelSync&) = delete;
  ParallelSync& operator=(const ParallelSync&) = delete;

  // Returns when every file's sync has ended: the error of the lowest file that has one, or ok.
  Status sync_all();

 private:
  void work();
  // Takes the next file and syncs it without the lock, which is held before and after.
  void sync_one(std::unique_lock<std::mutex>& lock);

  Disk& disk_;
  std::span<const io::File> files_;
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  std::vector<Status> outcomes_;  // one a file
  std::size_t next_index_;        // files_.size() and above: nothing to do
  std::size_t done_count_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sluice::state::detail
