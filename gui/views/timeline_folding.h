#pragma once
// Which rows of the timeline are folded: groups that somebody closed, and tracks of a phase that is
// over and far from what is shown.
//
// A phase is over when its track was silent for the later half of the run: the state's creation is,
// a validation that comes again every hundred steps is not. Rows change only while the view rests,
// and a track comes back at a smaller distance than it goes: zooming back and forth moves nothing.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <set>
#include <string>

#include "base/units.h"

namespace sluice::gui {

struct RunFacts;
struct RunSnapshot;

class TimelineFolding {
 public:
  bool is_closed(const std::string& group) const { return closed_.contains(group); }
  void toggle(const std::string& group);
  void close_all(const RunFacts& facts);
  void open_all() { closed_.clear(); }

  bool is_folded_away(std::int64_t track_id) const { return away_.contains(track_id); }
  bool keeps_all_rows() const { return keeps_all_rows_; }
  void toggle_keeping_all_rows() { keeps_all_rows_ = !keeps_all_rows_; }

  // Once a frame, with what is shown; true: other rows are folded away than before.
  bool update(const RunSnapshot& run, TimeNs view_begin, TimeNs view_end, bool is_at_rest);
  // Rows will change when the view rests.
  bool awaits_rest() const { return awaits_rest_; }
  // The row of this track is there from now on, until it is far away again.
  void reveal(const RunFacts& facts, std::int64_t track_id);

 private:
  std::set<std::string> closed_;
  std::set<std::int64_t> away_;
  bool keeps_all_rows_ = false;
  bool has_begun_ = false;
  bool awaits_rest_ = false;
};

}  // namespace sluice::gui
