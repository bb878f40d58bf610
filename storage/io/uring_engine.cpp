// The io_uring engine. A request occupies a slot; each attempt of its transfer is one submission
// entry that carries the slot's index. An attempt that leaves something to do is followed by the
// next one from inside reap().

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/check.h"
#include "storage/io/detail/attempt_hook.h"
#include "storage/io/detail/completion_signal.h"
#include "storage/io/detail/engines.h"
#include "storage/io/detail/registered_buffers.h"
#include "storage/io/detail/slot_table.h"
#include "storage/io/detail/uring_call.h"

namespace sluice::io {
namespace {

// Owns the kernel's ring.
class Ring {
 public:
  static Result<std::unique_ptr<Ring>> open(unsigned entry_count) {
    std::unique_ptr<Ring> ring(new Ring());
    const int result = io_uring_queue_init(entry_count, &ring->ring_, 0);
    if (result == -ENOSYS || result == -EPERM) {
      return make_error(ErrorCode::unsupported,
                        "this kernel refuses io_uring: io_uring_setup gave {}; choose "
                        "io_engine=posix, or allow io_uring (sysctl kernel.io_uring_disabled=0, "
                        "the container's seccomp profile)",
                        detail::errno_text(-result));
    }
    if (result == -ENOMEM) {
      return make_error(ErrorCode::unsupported,
                        "io_uring_setup gave {}: the limit on locked memory is too small for a "
                        "queue of {}; raise it (ulimit -l), or choose io_engine=posix",
                        detail::errno_text(-result), entry_count);
    }
    if (result < 0) return detail::uring_error("io_uring_queue_init", __FILE__, __LINE__, -result);
    ring->is_open_ = true;
    return ring;
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() {
    if (is_open_) io_uring_queue_exit(&ring_);
  }
  io_uring* get() { return &ring_; }

 private:
  Ring() = default;
  io_uring ring_ = {};
  bool is_open_ = false;
};

class UringEngine final : public detail::KernelEngine {
 public:
  UringEngine(std::unique_ptr<Ring> ring, detail::CompletionSignal signal, std::size_t queue_depth)
      : ring_(std::move(ring)),
        signal_(std::move(signal)),
        slots_(queue_depth),
        answers_(queue_depth) {}
  ~UringEngine() override;

  std::size_t submit(std::span<const IoRequest> requests) override;
  std::size_t reap(std::span<IoCompletion> completions, std::size_t at_least) override;
  Status register_buffers(std::span<const std::span<std::byte>> buffers) override;

  int completion_fd() const override { return signal_.fd(); }
  std::size_t inflight_count() const override { return slots_.inflight_count(); }
  std::size_t queue_depth() const override { return slots_.queue_depth(); }
  std::string_view name() const override { return "io_uring"; }

 private:
  void prepare_attempt(std::uint32_t slot);
  void prepare_kernel(io_uring_sqe* sqe, const IoRequest& request, const detail::Attempt& attempt);
  void take_results();
  void enter_kernel(std::size_t wait_count);

  std::unique_ptr<Ring> ring_;
  detail::CompletionSignal signal_;
  detail::SlotTable slots_;
  // For each slot: what the hook said in the kernel's stead (detail/attempt_hook.h).
  std::vector<std::optional<std::int32_t>> answers_;
  detail::RegisteredBuffers registered_;
};

// The kernel writes into the callers' memory until each request is done.
UringEngine::~UringEngine() {
  while (slots_.inflight_count() > slots_.finished_count()) {
    enter_kernel(1);
    take_results();
  }
}

std::size_t UringEngine::submit(std::span<const IoRequest> requests) {
  const std::size_t count = std::min(requests.size(), slots_.room_count());
  for (const IoRequest& request : requests.first(count)) {
    const auto [slot, ready] = slots_.take(request);
    if (ready) {
      prepare_attempt(slot);
    } else {
      signal_.raise();  // the kernel will not do it for a request that it never sees
    }
  }
  enter_kernel(0);
  return count;
}

std::size_t UringEngine::reap(std::span<IoCompletion> completions, std::size_t at_least) {
  const std::size_t wanted = std::min({at_least, completions.size(), slots_.inflight_count()});
  std::size_t count = 0;
  for (;;) {
    take_results();
    count += slots_.hand_out(completions.subspan(count));
    if (count >= wanted) break;
    enter_kernel(wanted - count);
  }
  enter_kernel(0);  // the further attempts that take_results() prepared

  // Cleared last, then looked at once more: a completion that came in between raises it again.
  signal_.clear();
  if (slots_.finished_count() > 0 || io_uring_cq_ready(ring_->get()) > 0 ||
      io_uring_sq_ready(ring_->get()) > 0) {
    signal_.raise();
  }
  return count;
}

Status UringEngine::register_buffers(std::span<const std::span<std::byte>> buffers) {
  CHECK_EQ(slots_.inflight_count(), 0u);
  if (!registered_.pieces().empty()) {
    const int result = io_uring_unregister_buffers(ring_->get());
    if (result < 0)
      return detail::uring_error("io_uring_unregister_buffers", __FILE__, __LINE__, -result);
    registered_ = detail::RegisteredBuffers(std::span<const std::span<std::byte>>{});
  }
  detail::RegisteredBuffers wanted(buffers);
  if (wanted.pieces().empty()) return ok_status();
  const int result = io_uring_register_buffers(ring_->get(), wanted.pieces().data(),
                                               static_cast<unsigned>(wanted.pieces().size()));
  if (result == -ENOMEM) {
    std::size_t size_bytes = 0;
    for (const std::span<std::byte>& buffer : buffers) size_bytes += buffer.size();
    return make_error(ErrorCode::memory,
                      "the kernel cannot lock {} bytes of buffers for io_uring; raise `ulimit -l` "
                      "or lower `buffers`",
                      size_bytes);
  }
  if (result < 0)
    return detail::uring_error("io_uring_register_buffers", __FILE__, __LINE__, -result);
  registered_ = std::move(wanted);
  return ok_status();
}

// A slot has one entry under way at most and the ring has an entry a slot, so there is always room
// for it, and the completion queue, twice as long, cannot overflow.
void UringEngine::prepare_attempt(std::uint32_t slot) {
  io_uring_sqe* sqe = io_uring_get_sqe(ring_->get());
  CHECK(sqe != nullptr);
  const IoRequest& request = slots_.transfer(slot).request();
  detail::Attempt attempt = slots_.transfer(slot).next_attempt();
  answers_[slot] = before_attempt(request.user_data, attempt);
  if (answers_[slot].has_value()) {
    io_uring_prep_nop(sqe);
  } else {
    prepare_kernel(sqe, request, attempt);
  }
  io_uring_sqe_set_data64(sqe, slot);
}

void UringEngine::prepare_kernel(io_uring_sqe* sqe, const IoRequest& request,
                                 const detail::Attempt& attempt) {
  const int fd = request.file->fd();
  const auto size_bytes = static_cast<unsigned>(attempt.size_bytes);
  const auto offset_bytes = static_cast<__u64>(attempt.offset_bytes);
  const std::optional<int> buffer = registered_.find(attempt.data, attempt.size_bytes);
  if (request.direction == IoDirection::read) {
    if (buffer.has_value()) {
      io_uring_prep_read_fixed(sqe, fd, attempt.data, size_bytes, offset_bytes, *buffer);
    } else {
      io_uring_prep_read(sqe, fd, attempt.data, size_bytes, offset_bytes);
    }
  } else if (buffer.has_value()) {
    io_uring_prep_write_fixed(sqe, fd, attempt.data, size_bytes, offset_bytes, *buffer);
  } else {
    io_uring_prep_write(sqe, fd, attempt.data, size_bytes, offset_bytes);
  }
}

void UringEngine::take_results() {
  unsigned taken_count = 0;
  unsigned head = 0;
  io_uring_cqe* cqe = nullptr;
  io_uring_for_each_cqe(ring_->get(), head, cqe) {
    const auto slot = static_cast<std::uint32_t>(io_uring_cqe_get_data64(cqe));
    detail::Transfer& transfer = slots_.transfer(slot);
    const std::int32_t result = answers_[slot].value_or(cqe->res);
    if (transfer.take_result(result) == detail::Transfer::Next::attempt) {
      prepare_attempt(slot);
    } else {
      slots_.finish(slot, transfer.status());
    }
    ++taken_count;
  }
  io_uring_cq_advance(ring_->get(), taken_count);
}

// Submits what is prepared and waits for `wait_count` answers. The kernel may take only part (out
// of memory for now, or a signal): the rest stays in the ring, reap() raises the signal for it, and
// the next call tries again.
void UringEngine::enter_kernel(std::size_t wait_count) {
  if (wait_count == 0 && io_uring_sq_ready(ring_->get()) == 0) return;
  const int result = io_uring_submit_and_wait(ring_->get(), static_cast<unsigned>(wait_count));
  if (result >= 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY) {
    if (io_uring_sq_ready(ring_->get()) > 0) signal_.raise();
    return;
  }
  check_failed(__FILE__, __LINE__, "io_uring_submit_and_wait", detail::errno_text(-result));
}

}  // namespace

Result<std::unique_ptr<IoEngine>> detail::open_uring_engine(const IoEngineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Ring> ring,
                   Ring::open(static_cast<unsigned>(options.queue_depth)));
  ASSIGN_OR_RETURN(CompletionSignal signal, CompletionSignal::open());
  URING_OR_RETURN(io_uring_register_eventfd(ring->get(), signal.fd()));
  return std::make_unique<UringEngine>(std::move(ring), std::move(signal), options.queue_depth);
}

}  // namespace sluice::io
