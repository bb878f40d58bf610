#pragma once
// How full each link is in a step: bytes that went over it, as a share of what it could have moved.
//
// Thread contract: immutable after construction.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/analyze/run_data.h"

namespace sluice::analyze {

// By its name in the platform file: what belongs to one device or accelerator has its name in
// front.
bool is_shared_link(const std::string& name);

// Ids of links that nothing crosses but what ranks send one another: their tracks are those of
// "ranks", of any rank.
std::set<std::int64_t> links_between_ranks(const RunInfo& info);

struct LinkLoad {
  std::int64_t link_id = 0;
  std::string name;
  rundb::Direction direction = rundb::Direction::read;
  bool is_of_drive = false;  // between a drive and its update engine, or the drive's own
  bool is_shared = false;    // by devices; false: of one device
  bool is_between_ranks = false;
  std::int64_t bytes = 0;  // payload and padding, as far as transfers lie in the step
  // By the run's own clock, as all its times are: a slower clock has a lower limit.
  double bytes_per_s_max = 0;
  double bytes_per_s = 0;  // while something moved
  double share = 0;        // of the step that moving these bytes takes at the most
  TimeNs busy_ns = 0;      // something was moving in this direction
};

// "out of drives", "into accelerator", "to other ranks": what people read of its direction.
std::string direction_text(const LinkLoad& load);

class LinkUse {
 public:
  explicit LinkUse(const StepData& step);

  // By link, read before write; only those that moved something.
  const std::vector<LinkLoad>& loads() const { return loads_; }
  // The load with the largest share on the track's route, in its direction; a half-duplex
  // link counts both directions. None: the track moves nothing.
  std::optional<LinkLoad> fullest(const TrackInfo& track) const;
  // Whether the drive that this span is about could be read while this span ran: it did not occupy
  // the drive's link, or that has a way for each direction.
  bool can_read_beside(const Span& span) const;

 private:
  const LinkLoad* load(std::int64_t link_id, rundb::Direction direction) const;

  const RunInfo& info_;
  std::vector<LinkLoad> loads_;
};

}  // namespace sluice::analyze
