#include "core/control/live_change.h"

#include "core/control/control_server.h"

namespace sluice::control {
namespace {

// The run's next event of a kind that `is_it` wants, however long steps are.
template <typename Event, typename IsIt>
Result<Event> await_event(ControlClient& client, const char* what,
                          std::optional<Event> Message::* kind, const Stops& stops, IsIt&& is_it) {
  while (!stops || !stops()) {
    ASSIGN_OR_RETURN(const std::optional<Message> message, client.next_event(kLiveTurn));
    if (!message) continue;
    const std::optional<Event>& event = (*message).*kind;
    if (event && is_it(*event)) return *event;
  }
  return make_error(ErrorCode::cancelled,
                    "not waited for: the {} is still asked for, and comes with the next step",
                    what);
}

}  // namespace

Result<std::unique_ptr<ControlClient>> connect_to_run(const std::string& database,
                                                      std::chrono::milliseconds timeout) {
  const std::string path = database.ends_with(".socket") ? database : socket_path_of(database);
  return ControlClient::connect(path, timeout);
}

Result<Message> ask_for_change(ControlClient& client, const SetRequest& set) {
  ASSIGN_OR_RETURN(const Message subscribed,
                   client.ask({.kind = RequestKind::subscribe}, kLiveAnswer));
  static_cast<void>(subscribed);
  Request request;
  request.kind = RequestKind::set;
  request.set = set;
  return client.ask(request, kLiveAnswer);
}

Result<ChangeEvent> await_change(ControlClient& client, std::int64_t change, const Stops& stops) {
  const auto is_it = [&](const ChangeEvent& told) { return told.change == change; };
  ASSIGN_OR_RETURN(ChangeEvent event,
                   await_event(client, "change", &Message::change_event, stops, is_it));
  if (event.state == ChangeState::refused)
    return make_error(ErrorCode::config, "{}", event.message);
  if (event.state == ChangeState::superseded)
    return make_error(ErrorCode::cancelled, "no step has had it: {}", event.message);
  return event;
}

Result<SnapshotEvent> await_snapshot(ControlClient& client, std::int64_t snapshot,
                                     const Stops& stops) {
  const auto is_it = [&](const SnapshotEvent& told) { return told.snapshot == snapshot; };
  ASSIGN_OR_RETURN(SnapshotEvent event,
                   await_event(client, "snapshot", &Message::snapshot_event, stops, is_it));
  if (!event.is_kept)
    return make_error(ErrorCode::io, "no snapshot was kept, and the run goes on: {}",
                      event.message);
  return event;
}

}  // namespace sluice::control
