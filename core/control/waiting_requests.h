#pragma once
// The requests to a run that wait for its next safe point, and the messages for clients: where the
// server's thread and the schedule meet. Neither waits for the other.
//
// Thread contract: every function from any thread; the lock is held for copies only.

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "core/control/control_server.h"
#include "core/control/messages.h"

namespace sluice::control {

class WaitingRequests {
 public:
  // The settings of all sets that wait. Here and below `cancelled`: the run is ending.
  Result<std::vector<std::string>> settings() const;
  // Takes the place of what waits for the same knobs; whoever asked for that is told.
  struct Accepted {
    std::int64_t change = 0;
    std::int64_t step = 0;  // at which it is to happen
  };
  Result<Accepted> add(const SetRequest& set);
  Result<std::int64_t> add_snapshot();
  Status ask_to_stop();
  bool stop_is_asked() const { return stop_is_asked_; }
  // All of it, which waits no longer.
  Due take_due();

  RunStatus status() const;
  void note_status(const RunStatus& status);
  void add_event(std::string line);
  std::vector<std::string> take_events();

  // Refuses what waits, with an event each, and all that comes. False: it was closed before.
  bool close(const std::string& reason);
  bool is_closed() const;
  std::string reason() const;

 private:
  void supersede(const SetRequest& later) REQUIRES(mutex_);
  Status check_open() const REQUIRES(mutex_);

  mutable Mutex mutex_;
  Due due_ GUARDED_BY(mutex_);
  RunStatus status_ GUARDED_BY(mutex_);
  std::vector<std::string> events_ GUARDED_BY(mutex_);
  std::int64_t next_change_ GUARDED_BY(mutex_) = 1;
  bool is_closed_ GUARDED_BY(mutex_) = false;
  std::string reason_ GUARDED_BY(mutex_);
  std::atomic<bool> stop_is_asked_{false};
};

}  // namespace sluice::control
