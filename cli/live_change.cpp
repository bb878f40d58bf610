#include "cli/live_change.h"

#include "cli/interrupt.h"
#include "core/control/control_server.h"

namespace sluice::cli {
namespace {

using control::Message;

// The run's next event of a kind that `is_it` wants, however long steps are.
template <typename Event, typename IsIt>
Result<Event> await_event(control::ControlClient& client, const char* what,
                          std::optional<Event> Message::* kind, IsIt&& is_it) {
  while (!is_interrupted()) {
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

Result<std::unique_ptr<control::ControlClient>> connect_to_run(const std::string& database) {
  const std::string path =
      database.ends_with(".socket") ? database : control::socket_path_of(database);
  return control::ControlClient::connect(path, kLiveAnswer);
}

Result<Message> ask_for_change(control::ControlClient& client, const control::SetRequest& set) {
  ASSIGN_OR_RETURN(const Message subscribed,
                   client.ask({.kind = control::RequestKind::subscribe}, kLiveAnswer));
  static_cast<void>(subscribed);
  control::Request request;
  request.kind = control::RequestKind::set;
  request.set = set;
  return client.ask(request, kLiveAnswer);
}

Result<control::ChangeEvent> await_change(control::ControlClient& client, std::int64_t change) {
  ASSIGN_OR_RETURN(control::ChangeEvent event, await_event(client, "change", &Message::change_event,
                                                           [&](const control::ChangeEvent& told) {
                                                             return told.change == change;
                                                           }));
  if (event.state == control::ChangeState::refused)
    return make_error(ErrorCode::config, "{}", event.message);
  if (event.state == control::ChangeState::superseded)
    return make_error(ErrorCode::cancelled, "no step has had it: {}", event.message);
  return event;
}

Result<control::SnapshotEvent> await_snapshot(control::ControlClient& client,
                                              std::int64_t snapshot) {
  ASSIGN_OR_RETURN(
      control::SnapshotEvent event,
      await_event(client, "snapshot", &Message::snapshot_event,
                  [&](const control::SnapshotEvent& told) { return told.snapshot == snapshot; }));
  if (!event.is_kept)
    return make_error(ErrorCode::io, "no snapshot was kept, and the run goes on: {}",
                      event.message);
  return event;
}

}  // namespace sluice::cli
