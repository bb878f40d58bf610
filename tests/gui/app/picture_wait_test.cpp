#include "gui/app/picture_wait.h"

#include <catch2/catch.hpp>

namespace sluice::gui {
namespace {

using Names = std::vector<std::string>;
const Names kAlone = {kPredictions};
const Names kBoth = {"statistics", kPredictions};

TEST_CASE("a picture waits for all but predictions as long as it takes, and says so once") {
  PictureWait wait;
  CHECK_FALSE(wait.is_over(kBoth, 0));
  CHECK(wait.word(kBoth, 1).empty());
  CHECK_FALSE(wait.is_over(kBoth, 500));
  CHECK(wait.word(kBoth, 500) == "sluice-gui: the picture waits for statistics, predictions\n");
  CHECK(wait.word(kBoth, 600).empty());
  CHECK(wait.is_over({}, 601));
  CHECK(wait.word({}, 601).empty());
}

TEST_CASE("a picture waits ten seconds for predictions alone, and is then without them") {
  PictureWait wait;
  CHECK_FALSE(wait.is_over(kBoth, 0));
  CHECK_FALSE(wait.is_over(kAlone, 100));
  CHECK(wait.word(kAlone, 100) == "sluice-gui: the picture waits for predictions\n");
  CHECK_FALSE(wait.is_over(kAlone, 109.9));
  CHECK(wait.is_over(kAlone, 110));
  CHECK(wait.is_over(kAlone, 111));
  CHECK_THAT(wait.word(kAlone, 111), Catch::Contains("no predictions: they take longer than 10 s"));
  // Something else begins anew: the ten seconds do, too.
  CHECK_FALSE(wait.is_over(kBoth, 112));
  CHECK_FALSE(wait.is_over(kAlone, 113));
}

}  // namespace
}  // namespace sluice::gui
