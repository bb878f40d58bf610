#pragma once
// The sharing of links written a second time, plainly and in another style, for comparison: rates
// rise by the largest step that overfills nothing, in long double; a flow stops rising when
// something it crosses is full or its cap is reached. Time goes from event to event over the whole
// list of flows. No state is kept from one event to the next but the bytes left.

#include <cstdint>
#include <map>
#include <vector>

#include "core/platform/platform.h"

namespace sluice::platform::reference {

struct Transfer {
  std::vector<int> route;
  Direction direction;
  long double bytes;
  long double cap;  // infinite: none
  TimeNs join_ns;
  int toll_link = -1;  // each byte also takes of this one's bandwidth for reading
  long double toll = 0;
};

// Rate of each transfer that is in `moving` (indices into `all`).
std::map<int, long double> rates_of(const std::vector<Link>& links,
                                    const std::vector<Transfer>& all,
                                    const std::vector<int>& moving);

// Completion time of each transfer.
std::vector<TimeNs> completion_times(const std::vector<Link>& links,
                                     const std::vector<Transfer>& all);

// Share of one constraint in use: both directions of a half-duplex link, one of a full-duplex one.
long double load(const Link& link, Direction direction, long double read_rate,
                 long double write_rate);

}  // namespace sluice::platform::reference
