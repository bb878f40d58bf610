#pragma once
// The border between an engine and the kernel, and the one place where a test may stand on it: each
// attempt passes a hook that may shorten it or answer in the kernel's stead. Everything behind the
// kernel's answer - continuation, retries, messages - is then the engine's own.

#include <cstdint>
#include <optional>

#include "storage/io/detail/transfer.h"
#include "storage/io/io_engine.h"

namespace sluice::io::detail {

// Called by the owner thread (io_uring) or by a worker (posix), never twice at once for the same
// request.
class AttemptHook {
 public:
  virtual ~AttemptHook() = default;
  // May shorten `attempt`. A value is the answer (bytes or -errno), and the kernel is not asked.
  virtual std::optional<std::int32_t> before_attempt(std::uint64_t user_data, Attempt& attempt) = 0;
};

// An engine that talks to the kernel, as io_uring and posix do.
class KernelEngine : public IoEngine {
 public:
  // Before the first submit; the hook must outlive the engine.
  void set_attempt_hook(AttemptHook* hook) { hook_ = hook; }

 protected:
  std::optional<std::int32_t> before_attempt(std::uint64_t user_data, Attempt& attempt) {
    return hook_ == nullptr ? std::nullopt : hook_->before_attempt(user_data, attempt);
  }

 private:
  AttemptHook* hook_ = nullptr;
};

}  // namespace sluice::io::detail
