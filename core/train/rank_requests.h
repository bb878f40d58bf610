#pragma once
// The requests to a run of several ranks, so that all do the same at the same step: changes of
// knobs come from the first rank, which alone listens; a stop or a snapshot may be wanted by any.
// The ranks tell one another after each step, so what is asked takes effect with the step after the
// next.
//
// Thread contract: the schedule's thread; collective over all ranks.

#include <vector>

#include "core/session/run_observer.h"

namespace sluice::train {

class Ranks;

class RankRequests final : public session::RunObserver, public session::RunRequests {
 public:
  // `inner`: this rank's own. All outlive it.
  RankRequests(Ranks& ranks, std::vector<session::RunRequests*> inner)
      : ranks_(ranks), inner_(std::move(inner)) {}

  // Asked once a step on all ranks; tells the others and hears them.
  bool wants_stop() override;
  std::vector<session::AskedChange> take_changes() override;
  bool wants_snapshot() override { return wants_snapshot_; }
  void on_snapshot(const Result<session::KeptSnapshot>& /*kept*/) override {
    wants_snapshot_ = false;
  }

 private:
  Ranks& ranks_;
  std::vector<session::RunRequests*> inner_;
  std::vector<session::AskedChange> changes_;
  bool wants_snapshot_ = false;
};

}  // namespace sluice::train
