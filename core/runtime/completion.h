#pragma once
// How an operation completes elsewhere: an XRT run, an event of an accelerator's stream, an MPI
// request (D15). Whoever starts such work gets a Completion and notes the end with it, from any
// thread. The note goes onto a bounded board and wakes the owner thread, which acts on it; the
// noting thread does no work of the schedule and never blocks.
//
// Guarantees, whatever the other side does:
// - The first note counts. A second one for the same operation is ignored and counted.
// - A note that comes after the operation was given up, after its place on the board went to
// another
//   operation, or after the run has ended, is ignored and touches nothing of the run.
//
// Thread contract: Completion::note() from any thread, also from a signal-free callback of a
// library; it takes no lock and no memory. The board itself belongs to ExternalWork
// (external_work.h).

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/units.h"

namespace sluice::runtime {

class CompletionBoard;

// When the work ran, on CLOCK_MONOTONIC, and where. -1: not known; the operation then starts when
// it was handed over and ends when the note came, on the only compute unit.
struct ExternalEnd {
  TimeNs start_ns = -1;
  TimeNs end_ns = -1;
  std::int32_t unit = -1;
};

class Completion {
 public:
  // The work has ended. False: nobody waits for this note (any more).
  bool note(Status outcome, ExternalEnd end = {}) const;

 private:
  friend class ExternalWork;
  Completion(std::shared_ptr<CompletionBoard> board, std::uint32_t place, std::uint64_t generation)
      : board_(std::move(board)), place_(place), generation_(generation) {}

  std::shared_ptr<CompletionBoard> board_;  // outlives the run for who notes late
  std::uint32_t place_;
  std::uint64_t generation_;
};

// A place for each operation that may be under way elsewhere.
class CompletionBoard {
 public:
  static constexpr std::uint32_t kPlaceCount = 64;  // bits of noted_

  // `wake_fd` is an eventfd; the board keeps a duplicate, which a late note may still write to.
  // Errors: ErrorCode::internal where there is no file descriptor left for it.
  static Result<std::shared_ptr<CompletionBoard>> make(int wake_fd);
  ~CompletionBoard();
  CompletionBoard(const CompletionBoard&) = delete;
  CompletionBoard& operator=(const CompletionBoard&) = delete;

  // A place goes round: free, awaited, noting, noted, free with the next generation. Whoever notes
  // moves it from awaited to noted, once; the owner does the rest.
  enum class Phase : std::uint64_t { free, awaited, noting, noted };
  static constexpr std::uint64_t word_of(std::uint64_t generation, Phase phase) {
    return generation * 4 + static_cast<std::uint64_t>(phase);
  }

  struct Place {
    std::atomic<std::uint64_t> word = word_of(0, Phase::free);
    // Written between noting and noted by who notes, read by the owner after noted.
    Status outcome;
    ExternalEnd end;
  };

  bool note(std::uint32_t place, std::uint64_t generation, Status outcome, ExternalEnd end);
  // For the owner: the places noted since the last call, as bits.
  std::uint64_t take_noted();
  Place& place(std::uint32_t index) { return places_[index]; }
  std::int64_t ignored_count() const { return ignored_count_.load(std::memory_order_relaxed); }

 private:
  explicit CompletionBoard(int own_wake_fd) : wake_fd_(own_wake_fd) {}

  int wake_fd_;  // its own
  std::array<Place, kPlaceCount> places_;
  std::atomic<std::uint64_t> noted_ = 0;
  std::atomic<std::int64_t> ignored_count_ = 0;
};

}  // namespace sluice::runtime
