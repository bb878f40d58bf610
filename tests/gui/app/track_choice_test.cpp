// Which tracks somebody wants to see, without a window around it.

#include "gui/views/track_choice.h"

#include <catch2/catch.hpp>

namespace sluice::gui {

TEST_CASE("without words all tracks are shown, with some those that have any of them") {
  TrackChoice choice;
  CHECK(choice.shows("csd0", "update"));
  choice.set_text("CSD0  forward");
  CHECK(choice.shows("csd0", "update"));
  CHECK(choice.shows("compute", "forward"));
  CHECK_FALSE(choice.shows("csd1", "update"));
  choice.set_text("   ");
  CHECK(choice.shows("csd1", "update"));
}

TEST_CASE("a word behind a minus hides, also what another word wants, and a minus alone does not") {
  TrackChoice choice;
  choice.set_text("csd -update");
  CHECK(choice.shows("csd1", "state_read"));
  CHECK_FALSE(choice.shows("csd1", "update"));
  CHECK_FALSE(choice.shows("host", "state_read"));
  choice.set_text("-update -");
  CHECK(choice.shows("host", "state_read"));
  CHECK_FALSE(choice.shows("csd0", "update"));
}

TEST_CASE("a name with blanks is one word, and its group is pinned and let go again") {
  TrackChoice choice;
  choice.show_only("rank 2: host");
  CHECK(choice.text() == "rank_2:_host");
  CHECK(choice.shows("rank 2: host", "link"));
  CHECK_FALSE(choice.shows("rank 1: host", "link"));
  choice.hide("link");
  CHECK_FALSE(choice.shows("rank 2: host", "link"));
  CHECK(choice.shows("rank 2: host", "threads"));
  CHECK_FALSE(choice.is_pinned("csd0"));
  choice.toggle_pin("csd0");
  CHECK(choice.is_pinned("csd0"));
  choice.toggle_pin("csd0");
  CHECK_FALSE(choice.is_pinned("csd0"));
}

}  // namespace sluice::gui
