#include "base/escaped_text.h"

#include <catch2/catch.hpp>

namespace sluice {
namespace {

using namespace std::string_view_literals;

TEST_CASE("printable text of any alphabet goes to the terminal as it is") {
  for (const std::string_view text :
       {""sv, "update subgroup 7"sv, "Schicht größe"sv, "слой"sv, "層"sv, "طبقة"sv, "😀"sv,
        "C:\\x1b"sv, "\u00a0"sv, "\U0010fffd"sv}) {
    CAPTURE(text);
    CHECK(escaped_for_terminal(text) == text);
  }
}

TEST_CASE("no control character reaches a terminal") {
  CHECK(escaped_for_terminal("\x1b[2Jgone"sv) == "\\x1b[2Jgone");
  CHECK(escaped_for_terminal("\x1b]0;title\x07"sv) == "\\x1b]0;title\\x07");
  CHECK(escaped_for_terminal("a\0b\x7f"sv) == "a\\x00b\\x7f");
  CHECK(escaped_for_terminal("a\tb\rc"sv) == "a\\x09b\\x0dc");
  CHECK(escaped_for_terminal("\u009b2J"sv) == "\\xc2\\x9b2J");       // C1: another way to say ESC [
  CHECK(escaped_for_terminal("a\u202eb"sv) == "a\\xe2\\x80\\xaeb");  // right to left
  CHECK(escaped_for_terminal("a\u2066b"sv) == "a\\xe2\\x81\\xa6b");
  CHECK(escaped_for_terminal("a\u2028b"sv) == "a\\xe2\\x80\\xa8b");  // a line's end
  CHECK(escaped_for_terminal("a\u061cb"sv) == "a\\xd8\\x9cb");
}

TEST_CASE("in JSON what a terminal may not see is text when it is parsed") {
  CHECK(escaped_in_json("{\"\u00e9\":\"a\u202eb\u009b\"}"sv) ==
        "{\"\u00e9\":\"a\\\\xe2\\\\x80\\\\xaeb\\\\xc2\\\\x9b\"}");
  CHECK(escaped_in_json("[\"C:\\\\x1b\\n\\u0007\",\n1]"sv) == "[\"C:\\\\x1b\\n\\u0007\",\n1]");
}

TEST_CASE("line feeds stay where a text has lines") {
  CHECK(escaped_for_terminal("one\ntwo"sv) == "one\\x0atwo");
  CHECK(escaped_for_terminal("one\ntwo\x1b"sv, LineFeeds::keep) == "one\ntwo\\x1b");
}

TEST_CASE("what is no UTF-8 is escaped byte by byte, and the text after it stays") {
  CHECK(escaped_for_terminal("\x9b"sv) == "\\x9b");  // C1 of an 8-bit terminal
  CHECK(escaped_for_terminal("\xc3"sv) == "\\xc3");  // cut
  CHECK(escaped_for_terminal("\xe5\xb1 a"sv) == "\\xe5\\xb1 a");
  CHECK(escaped_for_terminal("\xc0\x9b"sv) == "\\xc0\\x9b");  // overlong
  CHECK(escaped_for_terminal("\xe0\x80\x9b"sv) == "\\xe0\\x80\\x9b");
  CHECK(escaped_for_terminal("\xf0\x80\x80\x9b"sv) == "\\xf0\\x80\\x80\\x9b");
  CHECK(escaped_for_terminal("\xed\xa0\x80"sv) == "\\xed\\xa0\\x80");           // a surrogate
  CHECK(escaped_for_terminal("\xf4\x90\x80\x80"sv) == "\\xf4\\x90\\x80\\x80");  // beyond Unicode
  CHECK(escaped_for_terminal("\xff\xc3\xa9"sv) == "\\xff\u00e9");
}

TEST_CASE("whatever the bytes, what is printed holds no control character") {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text{'a', static_cast<char>(first), static_cast<char>(second), 'z'};
      for (const char byte : escaped_for_terminal(text)) {
        const auto value = static_cast<unsigned char>(byte);
        REQUIRE(value >= 0x20);
        REQUIRE(value != 0x7f);
      }
    }
  }
}

}  // namespace
}  // namespace sluice
