#pragma once
// The part of an open run that must come quickly: its facts and steps as they were read last, all
// of one moment.
//
// Thread contract: plain data, immutable once published.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gui/data/run_facts.h"
#include "gui/data/span_index.h"

namespace sluice::gui {

struct Counters;

struct RunSnapshot {
  std::shared_ptr<const RunFacts> facts;  // null: nothing could be read yet
  std::shared_ptr<const std::vector<rundb::StepRow>> steps;
  std::shared_ptr<const std::vector<rundb::ValidationRow>> validations;
  std::shared_ptr<const Counters> counters;
  TimeNs begin_ts = 0;  // of all that is recorded
  TimeNs end_ts = 0;
  std::int64_t span_count = 0;
  std::map<std::int64_t, TrackExtent> used_tracks;  // that have spans
  double recorder_share = -1;  // of one processor, mean; below 0: the record does not say
  bool is_live = false;
  std::uint64_t file =
      0;                // another number: of another file, which took the place of the one before
  std::string problem;  // not empty: why there is nothing, or nothing further
};

}  // namespace sluice::gui
