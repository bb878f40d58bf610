#include "core/runtime/external_work.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/clock.h"
#include "core/runtime/label_text.h"

namespace sluice::runtime {

using Phase = CompletionBoard::Phase;

void ExternalWork::start(OperationState* state) {
  waiting_.push(state);
  hand_over_waiting();
}

void ExternalWork::hand_over_waiting() {
  while (!waiting_.empty() && free_places_ != 0) {
    OperationState* state = waiting_.pop();
    if (!hand_over(state)) failed_.push(state);
  }
}

bool ExternalWork::hand_over(OperationState* state) {
  const auto index = static_cast<std::uint32_t>(std::countr_zero(free_places_));
  Handed& handed = handed_[index];
  const TimeNs patience_ns = state->operation.work.patience_ns;
  state->start_ns = monotonic_now_ns();
  handed.state = state;
  handed.deadline_ns = patience_ns > 0 ? state->start_ns + patience_ns : kNoDeadline;
  free_places_ &= ~(std::uint64_t{1} << index);
  board_->place(index).word.store(CompletionBoard::word_of(handed.generation, Phase::awaited),
                                  std::memory_order_release);
  Status started = state->operation.work.start(Completion(board_, index, handed.generation));
  if (started.ok()) return true;
  // Nothing runs, so no note is due. Where one came all the same, it is the outcome.
  if (!reclaim(index)) return true;
  state->status = std::move(started);
  state->end_ns = monotonic_now_ns();
  return false;
}

// Takes a place back from an operation whose end is not noted. False: a note is on its way.
bool ExternalWork::reclaim(std::uint32_t index) {
  Handed& handed = handed_[index];
  std::uint64_t awaited = CompletionBoard::word_of(handed.generation, Phase::awaited);
  const std::uint64_t next = CompletionBoard::word_of(handed.generation + 1, Phase::free);
  if (!board_->place(index).word.compare_exchange_strong(awaited, next,
                                                         std::memory_order_acq_rel)) {
    return false;
  }
  handed = {nullptr, handed.generation + 1, kNoDeadline};
  free_places_ |= std::uint64_t{1} << index;
  return true;
}

void ExternalWork::collect(OperationQueue& done) {
  for (std::uint64_t noted = board_->take_noted(); noted != 0; noted &= noted - 1) {
    take(static_cast<std::uint32_t>(std::countr_zero(noted)), done);
  }
  give_up_overdue(done);
  hand_over_waiting();
  while (!failed_.empty()) done.push(failed_.pop());
}

void ExternalWork::take(std::uint32_t index, OperationQueue& done) {
  Handed& handed = handed_[index];
  CompletionBoard::Place& place = board_->place(index);
  // The note's bit was set after its outcome was written, and was read with acquire.
  CHECK_EQ(place.word.load(std::memory_order_relaxed),
           CompletionBoard::word_of(handed.generation, Phase::noted));
  OperationState* state = handed.state;
  Status noted = std::exchange(place.outcome, ok_status());
  if (place.end.start_ns >= 0) state->start_ns = place.end.start_ns;
  state->end_ns = place.end.end_ns >= 0 ? place.end.end_ns : monotonic_now_ns();
  if (place.end.unit >= 0) state->unit = place.end.unit;
  handed = {nullptr, handed.generation + 1, kNoDeadline};
  free_places_ |= std::uint64_t{1} << index;
  place.word.store(CompletionBoard::word_of(handed.generation, Phase::free),
                   std::memory_order_release);
  Work& work = state->operation.work;
  state->status = work.finish ? work.finish(std::move(noted)) : std::move(noted);
  done.push(state);
}

void ExternalWork::give_up_overdue(OperationQueue& done) {
  const TimeNs next_ns = next_deadline_ns();
  if (next_ns == kNoDeadline) return;
  const TimeNs now_ns = monotonic_now_ns();
  if (now_ns < next_ns) return;
  for (std::uint32_t index = 0; index < CompletionBoard::kPlaceCount; ++index) {
    const TimeNs deadline_ns = handed_[index].deadline_ns;
    if (deadline_ns == kNoDeadline || now_ns < deadline_ns) continue;
    OperationState* state = handed_[index].state;
    if (!reclaim(index)) continue;
    state->end_ns = now_ns;
    state->status = make_error(
        ErrorCode::io,
        "{} was started and has not ended for {}: the device or its driver hangs. The last "
        "committed step is intact; reset the device and go on with --resume",
        label_text(state->operation.label), format_duration(state->operation.work.patience_ns));
    done.push(state);
  }
}

TimeNs ExternalWork::next_deadline_ns() const {
  TimeNs next_ns = kNoDeadline;
  if (free_places_ == ~std::uint64_t{0}) return next_ns;
  for (const Handed& handed : handed_) {
    if (handed.deadline_ns == kNoDeadline) continue;
    next_ns = next_ns == kNoDeadline ? handed.deadline_ns : std::min(next_ns, handed.deadline_ns);
  }
  return next_ns;
}

}  // namespace sluice::runtime
