#pragma once
// A run's figures in the text format of Prometheus (version 0.0.4). docs/watching.md lists them.
//
// Thread contract: one thread at a time.

#include <map>
#include <string>
#include <utility>

#include "profiler/analyze/step_verdicts.h"
#include "profiler/watch/run_follower.h"

namespace sluice::watch {

// Backslash, quote and line feed escaped, as the format has it.
std::string escaped_label(const std::string& value);

class Metrics {
 public:
  // Looks at the run and says what is there. Only operations that came since the last call are
  // read, so that a call costs the same however long the run is.
  Result<std::string> text(RunFollower& run);

 private:
  Status read_link_bytes(RunFollower& run);
  Status read_shares(RunFollower& run);
  Result<std::string> knobs(RunFollower& run) const;

  std::uint64_t file_number_ = 0;  // whose operations were added
  std::int64_t last_span_ = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> link_bytes_;  // link, direction
  std::int64_t shares_of_ = -1;                                             // the step
  analyze::Shares shares_{};
  bool has_shares_ = false;
};

}  // namespace sluice::watch
