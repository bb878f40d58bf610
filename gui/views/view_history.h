#pragma once
// Where somebody has looked before: stretches of the timeline with the span that was chosen there,
// back and forward as a browser has pages.
//
// Thread contract: one thread at a time.

#include <cstdint>
#include <optional>
#include <vector>

#include "gui/views/time_view.h"

namespace sluice::gui {

class ViewHistory {
 public:
  static constexpr double kRestSeconds = 0.5;
  static constexpr std::size_t kPlacesMax = 100;
  struct Place {
    TimeRange range;
    std::int64_t span_id = 0;  // 0: none was chosen
    bool operator==(const Place&) const = default;
  };

  // Once a frame. A place that is looked at for kRestSeconds is kept; scrolling past is not.
  void note(const Place& place, double now_seconds);
  bool can_go(int direction) const;
  // The place before (-1) or behind (1); none: there is no such.
  std::optional<Place> go(int direction);

 private:
  void keep(const Place& place);

  std::vector<Place> places_;
  std::size_t at_ = 0;  // the one that is looked at, or was left last
  Place resting_;
  double resting_since_ = -1;  // -1: nothing has been looked at yet
};

}  // namespace sluice::gui
