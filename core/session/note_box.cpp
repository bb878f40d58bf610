#include "core/session/note_box.h"

#include <utility>

namespace sluice::session {
namespace {

// Notes of a few threads; whoever sends more waits for the schedule anyhow.
constexpr std::size_t kNotes = 64;

}  // namespace

Error session_is_over() {
  return make_error(ErrorCode::cancelled, "the session is over; open it again to go on");
}

void Ticket::answer(Status outcome) {
  MutexLock lock(mutex_);
  outcome_ = std::move(outcome);
  // Under the lock: who waits may destroy the ticket as soon as it has the outcome.
  answered_.notify_one();
}

Status Ticket::wait() {
  MutexLock lock(mutex_);
  while (!outcome_) answered_.wait(mutex_);
  return *std::move(outcome_);
}

Result<std::unique_ptr<NoteBox>> NoteBox::make(runtime::Runtime& runtime) {
  ASSIGN_OR_RETURN(auto inbox, runtime::Inbox<Note>::make(runtime, kNotes));
  return std::unique_ptr<NoteBox>(new NoteBox(std::move(inbox)));
}

Status NoteBox::ask(Note note) {
  Ticket ticket;
  note.ticket = &ticket;
  if (!inbox_->send(note)) return session_is_over();
  return ticket.wait();
}

runtime::Task<Result<std::optional<Note>>> NoteBox::next() {
  Result<std::optional<Note>> next = co_await inbox_->next("the program that computes");
  if (next.ok() && *next) unanswered_.push_back((*next)->ticket);
  co_return next;
}

void NoteBox::answer(const Note& note, Status outcome) {
  std::erase(unanswered_, note.ticket);
  note.ticket->answer(std::move(outcome));
}

void NoteBox::answer_rest(const Status& why) {
  const Status outcome = why.ok() ? Status(session_is_over()) : why;
  for (Ticket* ticket : std::exchange(unanswered_, {})) ticket->answer(outcome);
  inbox_->close();
  for (const Note& note : inbox_->take_rest()) note.ticket->answer(outcome);
}

}  // namespace sluice::session
