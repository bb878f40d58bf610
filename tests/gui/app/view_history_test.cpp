// Where somebody has looked before, without a window around it.

#include "gui/views/view_history.h"

#include <catch2/catch.hpp>

namespace sluice::gui {
namespace {

using Place = ViewHistory::Place;

constexpr Place kRun = {{0, 10'000}, 0};
constexpr Place kStep = {{4'000, 5'000}, 0};
constexpr Place kSpan = {{4'100, 4'200}, 7};

// Looked at from `begin_seconds` on for a second.
void look(ViewHistory& history, const Place& place, double begin_seconds) {
  history.note(place, begin_seconds);
  history.note(place, begin_seconds + 1);
}

}  // namespace

TEST_CASE("a place that was looked at is gone back to, and forward again") {
  ViewHistory history;
  CHECK_FALSE(history.can_go(-1));
  look(history, kRun, 0);
  CHECK_FALSE(history.can_go(-1));
  look(history, kStep, 1);
  look(history, kSpan, 2);
  CHECK_FALSE(history.can_go(1));
  CHECK(history.go(-1) == kStep);
  CHECK(history.go(-1) == kRun);
  CHECK_FALSE(history.go(-1));
  CHECK(history.go(1) == kStep);
  CHECK(history.go(1) == kSpan);
  CHECK_FALSE(history.go(1));
}

TEST_CASE("places that are only passed are not kept, and small moves are the same place") {
  ViewHistory history;
  look(history, kRun, 0);
  for (int i = 1; i <= 20; ++i)
    history.note({{i * 100, i * 100 + 50}, 0}, 1 + i * 0.01);  // zooming and panning
  look(history, kStep, 1.21);
  look(history, {{4'050, 5'050}, 0}, 3);  // a little further along
  CHECK(history.go(-1) == kRun);
  CHECK(history.go(1) == Place{{4'050, 5'050}, 0});
}

TEST_CASE("back leads from a place just reached, and whoever goes elsewhere has no way forward") {
  ViewHistory history;
  look(history, kRun, 0);
  look(history, kStep, 1);
  history.note(kSpan, 2);  // for an instant
  CHECK(history.go(-1) == kStep);
  CHECK(history.go(1) == kSpan);
  CHECK(history.go(-1) == kStep);
  look(history, {{9'000, 9'100}, 3}, 4);
  CHECK_FALSE(history.can_go(1));
  CHECK(history.go(-1) == kStep);
}

TEST_CASE("a window that slept knows that the place was looked at, and old places are forgotten") {
  ViewHistory history;
  history.note(kRun, 0);
  history.note(kStep, 60);  // the next frame after a minute without any
  CHECK(history.go(-1) == kRun);
  ViewHistory many;
  for (int i = 0; i < 3 * static_cast<int>(ViewHistory::kPlacesMax); ++i)
    look(many, {{i * 1'000, i * 1'000 + 10}, i}, i * 2.0);
  std::size_t steps = 0;
  while (many.go(-1)) ++steps;
  CHECK(steps == ViewHistory::kPlacesMax - 1);
}

}  // namespace sluice::gui
