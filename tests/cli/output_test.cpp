#include "cli/output.h"

#include <catch2/catch.hpp>

#include "cli/exit_code.h"

using namespace sluice;
using namespace sluice::cli;

TEST_CASE("text of others does nothing to a terminal, and colours are ours alone") {
  const std::string hostile =
      "a\x1b]0;title\x07"
      "b\x1b[31m";
  for (const ColourDepth depth :
       {ColourDepth::none, ColourDepth::of_256, ColourDepth::of_24_bits}) {
    const std::string shown = terminal_text(hostile, depth);
    CHECK(shown.find('\x1b') == std::string::npos);
    CHECK(shown.find('\x07') == std::string::npos);
  }
  const std::string marked = amber("late") + ", then\nplain";
  CHECK(terminal_text(marked, ColourDepth::none) == "late, then\nplain");
  CHECK_THAT(terminal_text(marked, ColourDepth::of_24_bits),
             Catch::StartsWith("\x1b[38;2;243;179;61mlate\x1b["));
  CHECK_THAT(terminal_text(marked, ColourDepth::of_256), Catch::StartsWith("\x1b[38;5;"));
}

TEST_CASE("JSON is ASCII whatever a name holds") {
  const std::string text = json_text(nlohmann::json{{"name", "\xff\x1b層"}}, -1);
  for (const char c : text) CHECK((c >= ' ' && c <= '~'));
  CHECK(nlohmann::json::parse(text)["name"] == "\xef\xbf\xbd\x1b層");
}

TEST_CASE("exit codes tell a wrong argument from a run that failed") {
  for (const ErrorCode code :
       {ErrorCode::config, ErrorCode::not_found, ErrorCode::memory, ErrorCode::unsupported}) {
    CHECK(exit_code_of(make_error(code, "")) == kUsage);
  }
  for (const ErrorCode code :
       {ErrorCode::io, ErrorCode::corrupt, ErrorCode::internal, ErrorCode::cancelled}) {
    CHECK(exit_code_of(make_error(code, "")) == kFailed);
  }
  CHECK(exit_code_of(wrong_database(make_error(ErrorCode::corrupt, ""))) == kUsage);
  CHECK(exit_code_of(wrong_database(make_error(ErrorCode::io, ""))) == kFailed);
}
