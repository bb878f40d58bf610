#include "gui/data/kept_text.h"

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {

TEST_CASE("a file has the last text, and an earlier one leaves nothing behind") {
  const TempFolder folder;
  const std::string path = folder.file("gui.ini");
  {
    KeptText text(path);
    text.keep(std::string(10'000, 'x'));
    text.keep("first");
    CHECK(comes_true([&] { return report::text_of_file(path) == "first"; }));
    for (int i = 0; i < 100; ++i) text.keep("number " + std::to_string(i));
  }
  CHECK(report::text_of_file(path) == "number 99");
}

TEST_CASE("without a path, and where nothing can be written, nothing is kept") {
  const TempFolder folder;
  {
    KeptText("").keep("text");
  }
  {
    KeptText(folder.file("no/such/folder")).keep("text");
  }
  {
    const KeptText never(folder.file("never.ini"));
  }
  CHECK_FALSE(std::filesystem::exists(folder.file("never.ini")));
}

}  // namespace sluice::gui
