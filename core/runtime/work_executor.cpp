#include "core/runtime/work_executor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"

namespace sluice::runtime {
namespace {

// An owner that is behind with its work has more to do instead of sleeping. What it starts then is
// begun at most kCollectsAnIssue rounds later, together, which is how it catches up.
constexpr int kCollectsAnIssue = 8;

}  // namespace

Result<std::unique_ptr<WorkExecutor>> WorkExecutor::make(std::unique_ptr<io::IoEngine> engine,
                                                         const Options& options) {
  const int done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (done_fd < 0) {
    return make_error(ErrorCode::internal, "eventfd failed: {}", std::strerror(errno));
  }
  // Wake-ups to the microsecond, for the emulated clock; the default slack is 50 us.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Result<std::shared_ptr<CompletionBoard>> board = CompletionBoard::make(done_fd);
  if (!board.ok()) {
    close(done_fd);
    return std::move(board).error();
  }
  return std::unique_ptr<WorkExecutor>(
      new WorkExecutor(std::move(engine), options, done_fd, std::move(*board)));
}

WorkExecutor::WorkExecutor(std::unique_ptr<io::IoEngine> engine, const Options& options,
                           int done_fd, std::shared_ptr<CompletionBoard> board)
    : done_fd_{done_fd},
      lanes_(std::move(engine), options.lanes),
      compute_(1, done_fd, "compute"),
      host_(options.host_worker_count, done_fd, "host"),
      external_(std::move(board)) {}

WorkExecutor::EventFd::~EventFd() { close(fd); }

WorkExecutor::~WorkExecutor() {
  const std::int64_t ignored_count = external_.ignored_note_count();
  if (ignored_count == 0) return;
  log_warning(
      fmt::format("notes of ends that came twice or too late, and were ignored: {}; a "
                  "device, its driver or its library reports what it should not",
                  ignored_count));
}

void WorkExecutor::start(OperationState* state) {
  switch (state->operation.work.kind) {
    case WorkKind::transfer:
      return lanes_.start(state);
    case WorkKind::function:
      return (state->operation.work.workers == Workers::compute ? compute_ : host_).start(state);
    case WorkKind::external:
      return external_.start(state);
    case WorkKind::none:
      state->start_ns = state->end_ns = monotonic_now_ns();
      return without_work_.push(state);
  }
}

void WorkExecutor::collect(OperationQueue& done) {
  while (!without_work_.empty()) done.push(without_work_.pop());
  lanes_.collect(done);
  compute_.collect(done);
  host_.collect(done);
  external_.collect(done);
  if (++collects_since_issue_ >= kCollectsAnIssue) issue();
}

void WorkExecutor::issue() {
  collects_since_issue_ = 0;
  lanes_.issue();
  compute_.issue();
  host_.issue();
}

bool WorkExecutor::sleep(TimeNs timeout_ns) {
  issue();
  pollfd fds[2] = {{done_fd_.fd, POLLIN, 0}, {lanes_.completion_fd(), POLLIN, 0}};
  const TimeNs deadline_ns = external_.next_deadline_ns();
  if (deadline_ns != ExternalWork::kNoDeadline) {
    timeout_ns = std::min(timeout_ns, deadline_ns - monotonic_now_ns());
  }
  timeout_ns = std::max<TimeNs>(timeout_ns, 0);
  const timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                            static_cast<long>(timeout_ns % 1'000'000'000)};
  const int ready = ppoll(fds, 2, &timeout, nullptr);
  CHECK(ready >= 0 || errno == EINTR);
  if ((fds[0].revents & POLLIN) == 0) return false;
  std::uint64_t count = 0;
  CHECK(read(done_fd_.fd, &count, sizeof count) > 0 || errno == EAGAIN);
  return true;
}

}  // namespace sluice::runtime
