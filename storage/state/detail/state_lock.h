#pragma once
// The lock that keeps a state to one run. Held as long as the object lives; the kernel gives it
// back when the process ends, however it ends.
// Thread contract: one owner.

#include <string>

#include "base/status.h"

namespace sluice::state::detail {

class StateLock {
 public:
  // Refused with ErrorCode::busy, naming the process that holds it.
  static Result<StateLock> take(const std::string& directory);

  StateLock(StateLock&& other) noexcept;
  StateLock& operator=(StateLock&& other) noexcept;
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace sluice::state::detail
