#pragma once
// The window's line to a live run: a thread of its own talks to the run's control socket
// (core/control/control_client.h) and publishes what it hears. Requests go in, answers are there
// when they are there; nothing here waits for the run.
//
// Without a run the line is tried twice a second, so a run that begins, or is resumed, is found.
// Requests without a run are refused at once, not kept for later.
//
// Thread contract: one thread, the one that draws. Destroying it does not wait for an answer that
// is under way; its thread then ends by itself.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/control/messages.h"
#include "gui/data/published.h"

namespace sluice::gui {

// The outcome of a set that this window asked for, since the run answered it.
enum class SetOutcome : std::uint8_t { waiting, in_force, refused, kept, reverted, superseded };

struct AskedSet {
  std::uint64_t number = 0;  // what set() returned
  std::vector<std::string> settings;
  std::string revert_if;
  SetOutcome outcome = SetOutcome::waiting;
  std::int64_t change = 0;     // the run's number of it; 0: not answered yet, or refused
  std::int64_t from_step = 0;  // the first one that it holds for
  std::string message;         // the run's own words: why refused, kept, reverted or superseded
};

struct ControlState {
  bool is_connected = false;
  std::string why_not;                        // one sentence; empty while connected
  std::vector<control::Knob> knobs;           // with the values in force, by the last connection
  control::RunStatus status;                  // of the last step that was told
  std::vector<control::ChangeEvent> changes;  // heard, the newest last; at most kHeardMax
  std::vector<AskedSet> asked;                // the newest last; at most kHeardMax
  bool is_stopping = false;                   // the run has agreed to stop after its step
  std::string stop_refusal;

  const control::Knob* knob(const std::string& key) const;  // null: there is none
  const AskedSet* asked_set(std::uint64_t number) const;    // null: too long ago
};
inline constexpr std::size_t kHeardMax = 64;
inline constexpr const char* kWho = "gui";  // who the window is, in a run's record

struct ControlOptions {
  std::function<void()> wake = [] {};  // the state has changed; called by the link's thread
  int retry_ms = 500;
  int answer_ms = 10'000;  // a run answers within milliseconds; one that is stopped never does
};

class ControlLink {
 public:
  explicit ControlLink(const std::string& socket_path, ControlOptions options = {});
  ~ControlLink();
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;

  // Null until it was tried for the first time.
  std::shared_ptr<const ControlState> state() const;
  // Its number in ControlState::asked.
  std::uint64_t set(control::SetRequest request);
  void stop();  // the run, after its step

 private:
  struct Shared;
  class Worker;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sluice::gui
