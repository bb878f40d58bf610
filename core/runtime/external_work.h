#pragma once
// The operations whose work was handed to somebody else and whose end is noted through a
// Completion. At most CompletionBoard::kPlaceCount are under way; the others wait in the order in
// which they were asked for.
//
// An operation whose work has a `patience_ns` and whose end is not noted within it is given up: it
// fails with ErrorCode::io, which names it. The other side may still touch its buffers then, so
// they may not be used again, nor freed, before that side has been closed (the device, the stream).
//
// Thread contract: owner thread only. The start function of an operation is called on it, and must
// not block.

#include <array>
#include <memory>

#include "core/runtime/clock.h"
#include "core/runtime/completion.h"

namespace sluice::runtime {

class ExternalWork {
 public:
  static constexpr TimeNs kNoDeadline = -1;

  // The board wakes the owner.
  explicit ExternalWork(std::shared_ptr<CompletionBoard> board) : board_(std::move(board)) {}

  // Hands the work over, or queues it until a place is free. A start function that fails ends its
  // operation with that error at the next collect().
  void start(OperationState* state);
  // The operations noted by now, those that could not be started and those given up, with start_ns,
  // end_ns and status set.
  void collect(OperationQueue& done);
  // When the next operation is to be given up, on CLOCK_MONOTONIC; kNoDeadline: none.
  TimeNs next_deadline_ns() const;
  // Notes nobody waited for: second ones, and those that came too late.
  std::int64_t ignored_note_count() const { return board_->ignored_count(); }

 private:
  struct Handed {
    OperationState* state = nullptr;  // null: the place is free
    std::uint64_t generation = 0;
    TimeNs deadline_ns = kNoDeadline;
  };
  bool hand_over(OperationState* state);
  void hand_over_waiting();
  void take(std::uint32_t place, OperationQueue& done);
  void give_up_overdue(OperationQueue& done);
  bool reclaim(std::uint32_t place);

  std::shared_ptr<CompletionBoard> board_;
  std::array<Handed, CompletionBoard::kPlaceCount> handed_;
  std::uint64_t free_places_ = ~std::uint64_t{0};  // as bits
  OperationQueue waiting_;                         // for a place
  OperationQueue failed_;                          // that could not be started
};

}  // namespace sluice::runtime
