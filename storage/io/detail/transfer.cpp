#include "storage/io/detail/transfer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/units.h"
#include "storage/io/detail/error_text.h"

namespace sluice::io::detail {
namespace {

// The kernel transfers at most 2 GiB less a page at once, and an io_uring request counts its bytes
// in 32 bits.
constexpr std::int64_t kAttemptBytesMax = std::int64_t{1} << 30;

// EINTR and EAGAIN pass by themselves; an answer that never changes is an error, not a hang.
constexpr int kRetryCountMax = 1000;

const char* verb(IoDirection direction) {
  return direction == IoDirection::read ? "read" : "write";
}

bool is_aligned(const IoRequest& request) {
  const auto address = reinterpret_cast<std::uintptr_t>(request.data.data());
  return request.offset_bytes % kPageBytes == 0 && request.data.size() % kPageBytes == 0 &&
         address % kPageBytes == 0;
}

std::string describe(const IoRequest& request) {
  return fmt::format("{}: {} of {} bytes at offset {}", request.file->path(),
                     verb(request.direction), request.data.size(), request.offset_bytes);
}

}  // namespace

Status check_request(const IoRequest& request) {
  if (request.file == nullptr) {
    return make_error(ErrorCode::io, "{} of {} bytes at offset {}: the request names no file",
                      verb(request.direction), request.data.size(), request.offset_bytes);
  }
  if (request.data.empty()) {
    return make_error(ErrorCode::io, "{}: the request is empty", describe(request));
  }
  if (request.offset_bytes < 0) {
    return make_error(ErrorCode::io, "{}: the offset is negative", describe(request));
  }
  if (request.file->caching() == Caching::direct && !is_aligned(request)) {
    return make_error(ErrorCode::io,
                      "{}, memory at {}: misaligned; a direct file needs offset, length and memory "
                      "in multiples of {} bytes",
                      describe(request), static_cast<const void*>(request.data.data()), kPageBytes);
  }
  return ok_status();
}

std::int64_t blocking_attempt(const IoRequest& request, const Attempt& attempt) {
  const int fd = request.file->fd();
  const ssize_t result = request.direction == IoDirection::read
                             ? pread(fd, attempt.data, attempt.size_bytes, attempt.offset_bytes)
                             : pwrite(fd, attempt.data, attempt.size_bytes, attempt.offset_bytes);
  return result >= 0 ? result : -errno;
}

void Transfer::begin(const IoRequest& request) {
  *this = Transfer();
  request_ = request;
}

Attempt Transfer::next_attempt() const {
  const std::int64_t rest_bytes = size_bytes() - start_bytes_;
  return {.offset_bytes = request_.offset_bytes + start_bytes_,
          .data = request_.data.data() + start_bytes_,
          .size_bytes = static_cast<std::size_t>(std::min(rest_bytes, kAttemptBytesMax))};
}

Transfer::Next Transfer::take_result(std::int64_t result) {
  if (result == -EINTR || result == -EAGAIN) {
    if (++retry_count_ <= kRetryCountMax) return Next::attempt;
    return finish(Outcome::failed, static_cast<int>(-result));
  }
  if (result < 0) return finish(Outcome::failed, static_cast<int>(-result));

  const std::int64_t reached_bytes = start_bytes_ + result;
  CHECK_LE(reached_bytes, size_bytes());
  // On a direct file an attempt begins on a page even if the last one ended inside of it, so that
  // "no byte further than before" is what tells the end of a file, not "0 bytes".
  if (reached_bytes <= reached_bytes_) return finish(Outcome::no_progress, 0);
  reached_bytes_ = reached_bytes;
  if (reached_bytes_ == size_bytes()) return finish(Outcome::done, 0);
  const bool direct = request_.file->caching() == Caching::direct;
  start_bytes_ = direct ? round_down(reached_bytes_, kPageBytes) : reached_bytes_;
  retry_count_ = 0;
  return Next::attempt;
}

Transfer::Next Transfer::finish(Outcome outcome, int error_number) {
  outcome_ = outcome;
  error_number_ = error_number;
  return Next::finish;
}

Status Transfer::status() const {
  if (outcome_ == Outcome::done) return ok_status();
  if (outcome_ == Outcome::failed) {
    return make_error(errno_code(error_number_), "{}: {} after {} bytes{}", describe(request_),
                      errno_text(error_number_), reached_bytes_, errno_advice(error_number_));
  }
  if (request_.direction == IoDirection::read) {
    return make_error(ErrorCode::corrupt,
                      "{}: the file is cut short: {} bytes came, then its end; restore it or start "
                      "from another state_dir",
                      describe(request_), reached_bytes_);
  }
  return make_error(ErrorCode::io, "{}: the kernel took {} bytes and then no more",
                    describe(request_), reached_bytes_);
}

}  // namespace sluice::io::detail
