#include "core/runtime/completion.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace sluice::runtime {

bool Completion::note(Status outcome, ExternalEnd end) const {
  return board_->note(place_, generation_, std::move(outcome), end);
}

Result<std::shared_ptr<CompletionBoard>> CompletionBoard::make(int wake_fd) {
  const int own_fd = fcntl(wake_fd, F_DUPFD_CLOEXEC, 0);
  if (own_fd < 0) {
    return make_error(ErrorCode::internal, "an eventfd cannot be duplicated: {}",
                      std::strerror(errno));
  }
  return std::shared_ptr<CompletionBoard>(new CompletionBoard(own_fd));
}

CompletionBoard::~CompletionBoard() { close(wake_fd_); }

bool CompletionBoard::note(std::uint32_t index, std::uint64_t generation, Status outcome,
                           ExternalEnd end) {
  Place& place = places_[index];
  std::uint64_t awaited = word_of(generation, Phase::awaited);
  // Acquire: what the place held for the operation before has been read by the owner.
  if (!place.word.compare_exchange_strong(awaited, word_of(generation, Phase::noting),
                                          std::memory_order_acquire, std::memory_order_relaxed)) {
    ignored_count_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  place.outcome = std::move(outcome);
  place.end = end;
  place.word.store(word_of(generation, Phase::noted), std::memory_order_release);
  noted_.fetch_or(std::uint64_t{1} << index, std::memory_order_release);
  const std::uint64_t one = 1;
  // An eventfd takes any write until its counter is near 2^64: there is no failure to handle.
  CHECK_EQ(write(wake_fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  return true;
}

std::uint64_t CompletionBoard::take_noted() {
  if (noted_.load(std::memory_order_relaxed) == 0) return 0;
  return noted_.exchange(0, std::memory_order_acquire);
}

}  // namespace sluice::runtime
