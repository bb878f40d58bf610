#pragma once
// Work that comes to the schedule from other threads. A coroutine that waits for it does not make
// the schedule stuck: the runtime sleeps until somebody wakes it, and asks each source.
//
// Thread contract: OutsideSource is the owner thread's; Waker::wake() from any thread, without a
// lock, also after the run has ended.

#include <memory>

#include "base/status.h"

namespace sluice::runtime {

class OutsideSource {
 public:
  virtual ~OutsideSource() = default;
  // Makes ready who waits for what has come. Whether anybody was.
  virtual bool poll() = 0;
  virtual bool is_waited_for() const = 0;
};

class Waker {
 public:
  // `wake_fd` is the owner's eventfd; the waker keeps a duplicate. Errors: ErrorCode::internal
  // where there is no file descriptor left for it.
  static Result<Waker> make(int wake_fd);
  void wake() const;

 private:
  struct Fd {
    explicit Fd(int own) : fd(own) {}
    ~Fd();
    Fd(const Fd&) = delete;
    Fd& operator=(const Fd&) = delete;
    int fd;
  };
  explicit Waker(std::shared_ptr<const Fd> fd) : fd_(std::move(fd)) {}

  std::shared_ptr<const Fd> fd_;
};

}  // namespace sluice::runtime
