#pragma once
// The other end: what `sluice set`, `sluice knobs` and the GUI use to talk to a run.
//
// Thread contract: one thread at a time.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "core/control/messages.h"

namespace sluice::control {

class ControlClient {
 public:
  // ErrorCode::not_found: nothing listens there; the message says what that means.
  static Result<std::unique_ptr<ControlClient>> connect(const std::string& socket_path,
                                                        std::chrono::milliseconds timeout);
  virtual ~ControlClient() = default;

  virtual const Greeting& greeting() const = 0;
  // Waits for the answer; events that come before it are kept for next_event(). A refusal is an
  // Error with the run's own message.
  virtual Result<Message> ask(Request request, std::chrono::milliseconds timeout) = 0;
  // The next event; none if the time is over. After the run's goodbye, or if it died:
  // ErrorCode::cancelled.
  virtual Result<std::optional<Message>> next_event(std::chrono::milliseconds timeout) = 0;
  virtual int descriptor() const = 0;  // readable: there may be an event
};

}  // namespace sluice::control
