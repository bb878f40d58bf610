#pragma once
// The messages over the control socket: one JSON object a line, both ways. docs/control.md has the
// messages; this is the one place that knows how they are written.
//
// Thread contract: free functions on plain data.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "core/control/knob.h"

namespace sluice::control {

inline constexpr int kProtocolVersion = 1;
inline constexpr std::size_t kLineBytesMax = 64 << 10;  // of a request; longer ones are refused

// The message that greets a client.
struct Greeting {
  int version = kProtocolVersion;
  std::string run;
  std::string database;  // absolute
  std::int64_t pid = 0;
};

enum class RequestKind : std::uint8_t { status, knobs, set, subscribe, snapshot, stop };

// Several knobs, taken over together or not at all.
struct SetRequest {
  std::vector<std::string> settings;  // "key=value"
  std::string who = "user";
  // "step_time>+5%" (core/control/effect_watch.h); empty: no watch.
  std::string revert_if;
  std::int64_t watch_steps = 0;  // 0: the watch's default
};

struct Request {
  std::int64_t id = 0;  // the client's own; comes back with the answer
  RequestKind kind = RequestKind::status;
  SetRequest set = {};       // kind set
  std::string who = "user";  // kinds snapshot and stop
};

// How a run stands between two steps.
struct RunStatus {
  std::int64_t step = 0;  // committed or about to be
  std::int64_t steps = 0;
  double loss = 0;
  double step_seconds = 0;
  double forward_seconds = 0;
  double backward_seconds = 0;
  double update_seconds = 0;
  std::int64_t tokens = 0;  // of the step
};

enum class ChangeState : std::uint8_t { in_force, refused, kept, reverted, superseded };

// The outcome of a set.
struct ChangeEvent {
  std::int64_t change = 0;  // the number that the set was answered with
  ChangeState state = ChangeState::in_force;
  std::int64_t step = 0;  // the first one that it holds for
  TimeNs ts = 0;          // the run's clock
  std::vector<std::string> settings;
  std::string who;
  std::string message;  // why it was refused, kept, reverted or superseded
};

// The outcome of a request to keep the state.
struct SnapshotEvent {
  std::int64_t snapshot = 0;    // the number that the request was answered with
  bool is_kept = false;         // else the run goes on without it
  std::int64_t step = 0;        // committed
  std::string path;             // the folder
  std::int64_t size_bytes = 0;  // of the state's arrays
  std::string message;          // why it was refused
};

// Messages of what was asked for and does not happen any more.
inline constexpr const char* kEndedBeforeNextStep = "the run ended before its next step";
inline constexpr const char* kEndedBeforeSnapshot = "the run ended; its state is in its state_dir";

// An error's message begins with what was wrong; where an id could be read, it is in `id`.
Result<Request> parse_request(std::string_view line, std::int64_t& id);
std::string request_line(const Request& request);

// Answers and events end with a newline.
std::string greeting_line(const Greeting& greeting);
std::string error_line(std::int64_t id, const Error& error);
std::string ok_line(std::int64_t id);
std::string status_line(std::int64_t id, const RunStatus& status);
std::string knobs_line(std::int64_t id, const std::vector<Knob>& knobs);
std::string set_line(std::int64_t id, std::int64_t change, std::int64_t from_step);
std::string snapshot_line(std::int64_t id, std::int64_t snapshot);
std::string snapshot_event_line(const SnapshotEvent& event);
std::string step_event_line(const RunStatus& status);
std::string change_event_line(const ChangeEvent& event);
std::string end_event_line(const std::string& reason);

// A message as a client reads it. Which fields are there depends on what was asked.
struct Message {
  std::optional<Greeting> greeting;
  std::optional<std::int64_t> answer_to;  // the request's id
  std::optional<Error> error;             // the answer is a refusal
  std::vector<Knob> knobs;
  std::optional<RunStatus> status;  // an answer, or the event `step`
  std::int64_t change = 0;          // the answer to set
  std::int64_t from_step = 0;
  std::optional<ChangeEvent> change_event;
  std::int64_t snapshot = 0;  // the answer to snapshot
  std::optional<SnapshotEvent> snapshot_event;
  bool is_end = false;  // the run says goodbye
};
Result<Message> parse_message(std::string_view line);

const char* kind_name(RequestKind kind);
const char* change_state_name(ChangeState state);

}  // namespace sluice::control
