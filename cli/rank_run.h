#pragma once
// A training run as one of several ranks (`mpirun -n 4 sluice train RUN.toml`), or as the only one.
// Each rank has folders of its own below those of the settings: OUTPUT/rank-2, STATE_DIR/rank-2.
//
// Thread contract: main thread.

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace sluice::collective {
class Communicator;
}
namespace sluice::settings {
struct RunConfig;
}
namespace sluice::train {
class Ranks;
}

namespace sluice::cli {

class RankRun {
 public:
  // Whether a launcher started more than one rank is known from here on. A rank that does not come
  // for so long is named, and ends the run. Collective.
  static Result<std::unique_ptr<RankRun>> open(TimeNs patience_ns);
  ~RankRun();

  // Null: this is the only rank.
  train::Ranks* ranks() { return ranks_.get(); }
  bool is_first() const;
  int count() const;
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
  explicit RankRun(std::unique_ptr<collective::Communicator> communicator);
  std::int32_t node_ranks() const;

  std::unique_ptr<collective::Communicator> communicator_;
  std::unique_ptr<train::Ranks> ranks_;
};

}  // namespace sluice::cli
