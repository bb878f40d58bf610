#pragma once
// The change of knobs that the program which computes asks its session for: taken and answered
// within one call, and told to whoever watches the run as one that came over the socket.
//
// Thread contract: the schedule's thread, between steps.

#include <string>
#include <utility>
#include <vector>

#include "core/session/run_observer.h"

namespace sluice::session {

class ProgramChange final : public RunObserver, public RunRequests {
 public:
  // For one call of KnobChanges::before_step().
  explicit ProgramChange(std::vector<std::string> settings) : settings_(std::move(settings)) {}
  // After it: ok, or why nothing of it has changed.
  const Status& outcome() const { return outcome_; }

  std::vector<AskedChange> take_changes() override;
  void on_change_refused(std::int64_t step, TimeNs ts, const AskedChange& asked,
                         const Error& why) override;

 private:
  std::vector<std::string> settings_;
  Status outcome_;
};

}  // namespace sluice::session
