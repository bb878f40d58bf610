#pragma once
// The rows of the timeline as somebody left them: folded, scrolled, one to be brought into view.
//
// Thread contract: the frame thread.

#include <cstdint>
#include <optional>
#include <utility>

#include "gui/views/timeline_folding.h"
#include "gui/views/track_choice.h"

namespace sluice::gui {

class TimelineRows {
 public:
  TimelineFolding& folding() { return folding_; }
  const TimelineFolding& folding() const { return folding_; }
  TrackChoice& choice() { return choice_; }
  const TrackChoice& choice() const { return choice_; }
  // The row of this track shall be scrolled to and unfolded.
  void bring(std::int64_t track_id) { wanted_track_ = track_id; }
  std::optional<std::int64_t> take_wanted() { return std::exchange(wanted_track_, std::nullopt); }
  // How far they are scrolled down, in pixels.
  float scroll() const { return scroll_; }
  void scroll_to(float y) { scroll_ = y; }

 private:
  TimelineFolding folding_;
  TrackChoice choice_;
  std::optional<std::int64_t> wanted_track_;
  float scroll_ = 0;
};

}  // namespace sluice::gui
