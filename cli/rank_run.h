#pragma once
// A training run as one of several ranks (`mpirun -n 4 sluice train RUN.toml`), or as the only one.
// Each rank has folders of its own below those of the settings: OUTPUT/rank-2, STATE_DIR/rank-2.
//
// Thread contract: main thread.

#include <memory>

#include "core/collective/open_ranks.h"
#include "core/settings/run_config.h"
#include "core/train/ranks.h"

namespace sluice::cli {

class RankRun {
 public:
  // Whether a launcher started more than one rank is known from here on. A rank that does not come
  // for so long is named, and ends the run. Collective.
  static Result<std::unique_ptr<RankRun>> open(TimeNs patience_ns);

  // Null: this is the only rank.
  train::Ranks* ranks() { return ranks_.get(); }
  bool is_first() const { return communicator_->rank() == 0; }
  int count() const { return communicator_->rank_count(); }
  // Names the run in the record of each of its several ranks, and no other run. Collective.
  Result<std::string> run_id();
  // This rank's part of a run with these settings. Errors (ErrorCode::config): settings that do not
  // go with several ranks.
  Status take_part(settings::RunConfig& config) const;
  // The reason why one rank cannot begin, as a failure of all of them
  // (train::Ranks::agreed_or_end).
  Status agreed(const Status& mine);
  // The run is over, with this outcome: says it and gives the exit code. A failure that all ranks
  // know of is said by the first one. Any other ends all ranks, and says whose it is; with MPI this
  // process ends there.
  int close(const Status& outcome);

 private:
  explicit RankRun(std::unique_ptr<collective::Communicator> communicator)
      : communicator_(std::move(communicator)) {}
  std::int32_t node_ranks() const;

  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<train::Ranks> ranks_;
};

}  // namespace sluice::cli
