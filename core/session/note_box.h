#pragma once
// The requests of the program that computes to a session's schedule: notes from its threads, each
// of which waits for an answer.
//
// Thread contract: ask() and close() from any thread; the rest on the schedule's thread.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "core/runtime/inbox.h"
#include "core/session/session.h"

namespace sluice::session {

// The ticket that the sender of a note waits on.
class Ticket {
 public:
  void answer(Status outcome);
  Status wait();

 private:
  Mutex mutex_;
  CondVar answered_;
  std::optional<Status> outcome_ GUARDED_BY(mutex_);
};

struct Note {
  // wait: until a tensor's parameters may be read; copied: they have been. between: an action
  // behind a commit, or a change of knobs. look: an action at any time.
  enum class Kind : std::uint8_t { gradient, read, replace, wait, copied, step, between, look };
  Kind kind = Kind::gradient;
  std::size_t tensor = 0;
  std::span<const float> gradient = {};
  std::span<float> into = {};  // of Kind::read
  const StepRequest* step = nullptr;
  StepDone* done = nullptr;
  const std::function<Status()>* action = nullptr;     // of Kind::between and look
  const std::vector<std::string>* settings = nullptr;  // a change of knobs, of Kind::between
  const char* what = nullptr;                          // it is, for messages
  Ticket* ticket = nullptr;
};

class NoteBox {
 public:
  // Errors: those of Inbox::make().
  static Result<std::unique_ptr<NoteBox>> make(runtime::Runtime& runtime);

  // Sends the note and waits for its answer.
  Status ask(Note note);
  // No more notes: ask() is answered by an error.
  void close() { inbox_->close(); }

  // None: the box is closed, and all that was in it has been handed out.
  runtime::Task<Result<std::optional<Note>>> next();
  void answer(const Note& note, Status outcome);
  // Nobody is left waiting for a session that is over. `why`: ok, or what it failed with.
  void answer_rest(const Status& why);

 private:
  explicit NoteBox(std::unique_ptr<runtime::Inbox<Note>> inbox) : inbox_(std::move(inbox)) {}

  std::unique_ptr<runtime::Inbox<Note>> inbox_;
  std::vector<Ticket*> unanswered_;  // handed out
};

// The error that a call gets once the session is over.
Error session_is_over();

}  // namespace sluice::session
