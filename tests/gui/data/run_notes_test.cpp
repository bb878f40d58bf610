// Notes beside a run: kept whole, never over what somebody else wrote, never over what is no list.

#include "gui/data/run_notes.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/gui/data/feed_fixture.h"

namespace sluice::gui {
namespace {

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// As frames do, until it holds.
template <typename Holds>
bool comes(RunNotes& notes, Holds&& holds) {
  return comes_true([&] {
    notes.pick_up();
    return holds();
  });
}

}  // namespace

TEST_CASE("notes are in the file as soon as they are written, and there when it is opened again") {
  const TempFolder folder;
  const std::string database = folder.file("run.db");
  RunNotes notes;
  notes.open(database, [] {});
  CHECK_FALSE(notes.add({1, 0, "before the file was read"}));
  REQUIRE(comes(notes, [&] { return notes.is_read(); }));
  CHECK(notes.add({2'000, 7, "a late read"}));
  CHECK(notes.add({1'000, 0, "begins here"}));
  CHECK_FALSE(notes.add({3'000, 0, ""}));
  const std::string expected = notes_text({{1'000, 0, "begins here"}, {2'000, 7, "a late read"}});
  REQUIRE(comes(notes, [&] { return text_of(notes_path(database)) == expected; }));
  notes.change(0, "begins later");
  notes.change(1, "");
  REQUIRE(comes(notes, [&] {
    return text_of(notes_path(database)) == notes_text({{1'000, 0, "begins later"}});
  }));
  RunNotes again;
  again.open(database, [] {});
  REQUIRE(comes(again, [&] { return again.is_read(); }));
  CHECK(again.all() == std::vector<RunNote>{{1'000, 0, "begins later"}});
  const std::filesystem::directory_iterator files(folder.file("."));
  CHECK(std::distance(begin(files), end(files)) == 1);  // nothing unfinished is left
}

TEST_CASE("what another window has written is not written over, and that is said") {
  const TempFolder folder;
  const std::string database = folder.file("run.db");
  RunNotes first;
  RunNotes second;
  first.open(database, [] {});
  second.open(database, [] {});
  REQUIRE(comes(first, [&] { return first.is_read(); }));
  REQUIRE(comes(second, [&] { return second.is_read(); }));
  CHECK(first.add({1, 0, "of the first"}));
  const std::string kept = notes_text({{1, 0, "of the first"}});
  REQUIRE(comes(first, [&] { return text_of(notes_path(database)) == kept; }));
  CHECK(second.add({2, 0, "of the second"}));
  REQUIRE(comes(second, [&] { return !second.problem().empty(); }));
  CHECK(second.problem().find("another window has changed them") != std::string::npos);
  CHECK(text_of(notes_path(database)) == kept);
}

TEST_CASE("a file that holds no notes is named and left as it is") {
  for (const std::string& text :
       {std::string("no JSON"), std::string("[]"), std::string(R"({"sluice_notes":2,"notes":[]})"),
        std::string(R"({"sluice_notes":1,"notes":[{"ts":1}]})"),
        std::string(R"({"sluice_notes":1,"notes":[{"ts":1e99,"text":"x"}]})")}) {
    INFO(text);
    const TempFolder folder;
    const std::string database = folder.file("run.db");
    std::ofstream(notes_path(database)) << text;
    CHECK_FALSE(parse_notes(text).ok());
    RunNotes notes;
    notes.open(database, [] {});
    REQUIRE(comes(notes, [&] { return !notes.problem().empty(); }));
    CHECK_FALSE(notes.add({1, 0, "lost"}));
    CHECK(text_of(notes_path(database)) == text);
  }
}

TEST_CASE("notes have bounds") {
  std::vector<RunNote> many(kNotesMax + 1, RunNote{1, 0, "x"});
  CHECK_FALSE(parse_notes(notes_text(many)).ok());
  many.pop_back();
  CHECK(parse_notes(notes_text(many)).ok());
  const std::string longest(2 * kNoteBytesMax, 'y');
  const auto notes = parse_notes(notes_text({{1, 0, longest}}));
  REQUIRE(notes.ok());
  CHECK(notes->front().text.size() == kNoteBytesMax);
}

}  // namespace sluice::gui
