#pragma once
// Does the work of operations: transfers through the I/O lanes, functions on the workers, and what
// completes elsewhere through its board. What the real and the emulated clock have in common.
//
// Thread contract: owner thread only.

#include <memory>

#include "core/runtime/external_work.h"
#include "core/runtime/io_lanes.h"
#include "core/runtime/worker_pool.h"

namespace sluice::runtime {

class WorkExecutor {
 public:
  struct Options {
    IoLanes::Options lanes;
    int host_worker_count = 2;
  };
  static Result<std::unique_ptr<WorkExecutor>> make(std::unique_ptr<io::IoEngine> engine,
                                                    const Options& options);
  ~WorkExecutor();

  // Begins when the owner goes to sleep, or after a few more collect().
  void start(OperationState* state);
  // The operations that have finished by now; does not wait.
  void collect(OperationQueue& done);
  // Begins what was started, then sleeps until something may have finished or `timeout_ns` has
  // passed. Whether somebody has ended it.
  bool sleep(TimeNs timeout_ns);
  // Only while no transfer is under way.
  void set_lanes(const IoLanes::Options& options) { lanes_.set_options(options); }
  // Completions noted twice or too late, so far.
  std::int64_t ignored_note_count() const { return external_.ignored_note_count(); }
  // Ends a sleep.
  int wake_fd() const { return done_fd_.fd; }
  std::string_view engine_name() const { return lanes_.engine_name(); }

 private:
  WorkExecutor(std::unique_ptr<io::IoEngine> engine, const Options& options, int done_fd,
               std::shared_ptr<CompletionBoard> board);
  void issue();

  // The eventfd of the workers and of external completions. Closed last: a worker may still be
  // writing to it when the run ends.
  struct EventFd {
    int fd;
    ~EventFd();
  } done_fd_;
  IoLanes lanes_;
  WorkerPool compute_;
  WorkerPool host_;
  ExternalWork external_;
  OperationQueue without_work_;
  int collects_since_issue_ = 0;
};

}  // namespace sluice::runtime
