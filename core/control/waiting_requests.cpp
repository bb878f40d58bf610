#include "core/control/waiting_requests.h"

#include <utility>

#include "core/control/effect_watch.h"
#include "core/control/superseded.h"

namespace sluice::control {
namespace {

constexpr std::size_t kWaitingSnapshotsMax = 1024;

}  // namespace

Status WaitingRequests::check_open() const {
  if (!is_closed_) return ok_status();
  return make_error(ErrorCode::cancelled, "the run is ending");
}

Result<std::vector<std::string>> WaitingRequests::settings() const {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(check_open());
  std::vector<std::string> settings;
  for (const QueuedSet& queued : due_.sets) {
    for (const std::string& setting : queued.set.settings) settings.push_back(setting);
  }
  return settings;
}

Result<WaitingRequests::Accepted> WaitingRequests::add(const SetRequest& set) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(check_open());
  const std::int64_t change = next_change_++;
  supersede(set);
  due_.sets.push_back({change, set});
  return Accepted{change, status_.step + 1};
}

// A request that waits keeps the knobs that `later` leaves alone.
void WaitingRequests::supersede(const SetRequest& later) {
  std::vector<QueuedSet> left;
  for (QueuedSet& queued : due_.sets) {
    ChangeEvent event;
    event.settings = queued.set.settings;
    drop_superseded(queued.set.settings, later.settings);
    if (!queued.set.settings.empty()) {
      left.push_back(std::move(queued));
      continue;
    }
    event.change = queued.change;
    event.state = ChangeState::superseded;
    event.step = status_.step;
    event.who = queued.set.who;
    event.message = superseded_by(later.who);
    events_.push_back(change_event_line(event));
  }
  due_.sets = std::move(left);
}

Result<std::int64_t> WaitingRequests::add_snapshot() {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(check_open());
  if (due_.snapshots.size() >= kWaitingSnapshotsMax) {
    return make_error(ErrorCode::busy, "{} snapshots wait for the next step", kWaitingSnapshotsMax);
  }
  due_.snapshots.push_back(next_change_);
  return next_change_++;
}

Status WaitingRequests::ask_to_stop() {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(check_open());
  stop_is_asked_ = true;
  return ok_status();
}

Due WaitingRequests::take_due() {
  MutexLock lock(mutex_);
  return std::exchange(due_, {});
}

RunStatus WaitingRequests::status() const {
  MutexLock lock(mutex_);
  return status_;
}

void WaitingRequests::note_status(const RunStatus& status) {
  MutexLock lock(mutex_);
  status_ = status;
}

void WaitingRequests::add_event(std::string line) {
  MutexLock lock(mutex_);
  events_.push_back(std::move(line));
}

std::vector<std::string> WaitingRequests::take_events() {
  MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

bool WaitingRequests::close(const std::string& reason) {
  MutexLock lock(mutex_);
  if (is_closed_) return false;
  is_closed_ = true;
  reason_ = reason;
  for (const QueuedSet& queued : due_.sets) {
    ChangeEvent event;
    event.change = queued.change;
    event.state = ChangeState::refused;
    event.settings = queued.set.settings;
    event.who = queued.set.who;
    event.message = kEndedBeforeNextStep;
    events_.push_back(change_event_line(event));
  }
  for (const std::int64_t snapshot : due_.snapshots) {
    SnapshotEvent event;
    event.snapshot = snapshot;
    event.message = kEndedBeforeSnapshot;
    events_.push_back(snapshot_event_line(event));
  }
  due_ = {};
  return true;
}

bool WaitingRequests::is_closed() const {
  MutexLock lock(mutex_);
  return is_closed_;
}

std::string WaitingRequests::reason() const {
  MutexLock lock(mutex_);
  return reason_;
}

}  // namespace sluice::control
