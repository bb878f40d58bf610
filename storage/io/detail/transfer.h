#pragma once
// One transfer on its way through the kernel: what to ask next, and what an answer means. The only
// place that knows how short transfers, EINTR, EAGAIN and the end of a file are treated; both
// engines and File's blocking calls are loops around it.

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "storage/io/io_engine.h"

namespace sluice::io::detail {

// The part that the kernel is asked for at once: the rest of a transfer, or its beginning.
struct Attempt {
  std::int64_t offset_bytes = 0;
  std::byte* data = nullptr;
  std::size_t size_bytes = 0;
};

// Whether a request can be handed to the kernel at all: has a file, is not empty, is aligned.
Status check_request(const IoRequest& request);

// Asks the kernel in place (pread, pwrite): bytes transferred, or -errno.
std::int64_t blocking_attempt(const IoRequest& request, const Attempt& attempt);

class Transfer {
 public:
  enum class Next : std::uint8_t { attempt, finish };

  void begin(const IoRequest& request);
  const IoRequest& request() const { return request_; }

  Attempt next_attempt() const;

  // Takes the kernel's answer to next_attempt(): bytes transferred, or -errno.
  Next take_result(std::int64_t result);

  // The status of a transfer that finished: ok or why not. Allocates only for an error.
  Status status() const;

 private:
  enum class Outcome : std::uint8_t { done, failed, no_progress };
  Next finish(Outcome outcome, int error_number);
  std::int64_t size_bytes() const { return static_cast<std::int64_t>(request_.data.size()); }

  IoRequest request_;
  std::int64_t start_bytes_ = 0;    // where the next attempt begins, from the request's offset
  std::int64_t reached_bytes_ = 0;  // transferred so far
  int retry_count_ = 0;             // EINTR and EAGAIN since the last progress
  Outcome outcome_ = Outcome::done;
  int error_number_ = 0;
};

}  // namespace sluice::io::detail
