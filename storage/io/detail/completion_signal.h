#pragma once
// An eventfd that is readable while it is raised. Any thread may raise it; the engine's owner
// clears it.

#include "base/status.h"

namespace sluice::io::detail {

class CompletionSignal {
 public:
  static Result<CompletionSignal> open();

  CompletionSignal(CompletionSignal&& other) noexcept;
  CompletionSignal& operator=(CompletionSignal&&) = delete;
  ~CompletionSignal();

  int fd() const { return fd_; }
  void raise() const { raise(fd_); }
  // Raises a signal that somebody else owns.
  static void raise(int fd);
  void clear() const;

 private:
  explicit CompletionSignal(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace sluice::io::detail
