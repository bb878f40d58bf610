#pragma once
// The run's end of the control socket: a Unix-domain socket beside the run database, mode 0600,
// that only the run's own user (or root) may talk to. docs/control.md has the protocol.
//
// The schedule is never waited for and never waits: the server's thread checks requests, queues
// what is to happen at the next safe point, and answers at once; the schedule takes what is due
// between two steps and tells what became of it.
//
// Bounded: 256 clients, 64 KiB a request, 1 MiB of answers that a client does not read, 1024
// snapshots that wait. Whoever passes one of these is told, and where that cannot help,
// disconnected. The last set of each knob is kept of those that wait, so there are never more than
// knobs.
//
// Thread contract: every function from any thread; take_due(), stop_is_asked() and the tell()s are
// meant for the schedule's.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/control/messages.h"

namespace sluice::control {

struct QueuedSet {
  std::int64_t change = 0;
  SetRequest set;
};

// The requests to be met at a safe point, in this order.
struct Due {
  std::vector<QueuedSet> sets;          // each knob in one of them at most
  std::vector<std::int64_t> snapshots;  // the numbers of requests; one snapshot answers them all
};

// The functions of the run that the server needs. Called on the server's thread.
struct RunSeam {
  // The knobs with their values in force.
  std::function<std::vector<Knob>()> knobs;
  // Whether these settings could be taken over after those that wait already; the message says why
  // not. Must not wait for the schedule.
  std::function<Status(const std::vector<std::string>& waiting,
                       const std::vector<std::string>& settings)>
      check;
  // Whether anybody has subscribed to events, each time that this changes; at first nobody has. May
  // be none.
  std::function<void(bool)> watched = {};
  // A snapshot or a stop that was just accepted. May be none.
  std::function<void(const Request&)> asked = {};
};

class ControlServer {
 public:
  // A socket that nobody listens on any more is replaced; one that somebody does, or a file that is
  // no socket, is refused.
  static Result<std::unique_ptr<ControlServer>> start(const std::string& socket_path,
                                                      const Greeting& greeting, RunSeam seam);
  virtual ~ControlServer() = default;  // close("")

  virtual Due take_due() = 0;
  // Whether anybody has asked the run to end. Waits for no safe point: whatever is only for people
  // is left out from now on.
  virtual bool stop_is_asked() const = 0;
  virtual void tell(const RunStatus& status) = 0;
  virtual void tell(const ChangeEvent& event) = 0;
  virtual void tell(const SnapshotEvent& event) = 0;
  // Says goodbye, ends the thread, removes the socket. What waits is refused.
  virtual void close(const std::string& reason) = 0;
};

// Where the socket of a run with this database is.
std::string socket_path_of(const std::string& database);

}  // namespace sluice::control
