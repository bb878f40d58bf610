#pragma once
// The output of the command. All of it goes through here, since much of it holds words of
// others: names from a database, a TOML file or a state, and what a model writes.
//
// Thread contract: main thread.

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/escaped_text.h"
#include "cli/paint.h"

namespace sluice::cli {

// Lines, escaped for a terminal and painted as it can be.
void print_lines(std::string_view text, std::FILE* stream = stdout);
std::string terminal_text(std::string_view text, ColourDepth depth);
void flush_lines();  // what was printed so far

// From now on a reader that goes away does not end the program (SIGPIPE). If what it prints is its
// answer, to lose that is an error at the end all the same; lines about its progress are lost
// without one.
enum class Lines { answer, progress };
void outlive_readers(Lines lines);

// The last that main() does: the exit code of the program, kFailed with a sentence on stderr in
// place of kDone if what was printed could not be written. Without a word if its reader has left,
// as in `sluice show RUN.db | head`.
int finish_output(int exit_code);

template <typename T>
decltype(auto) without_line_feeds(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return escaped_for_terminal(value);
  } else {
    return (value);
  }
}

// A text among the values is a name: it may not begin a line either.
template <typename... Args>
void print(fmt::format_string<Args...> format, const Args&... values) {
  const auto formatted = [&](const auto&... printable) {
    return fmt::vformat(format, fmt::make_format_args(printable...));
  };
  print_lines(formatted(without_line_feeds(values)...));
}

// ASCII, with every other character as \uNNNN: a name can neither do anything to a terminal nor be
// no UTF-8, which JSON cannot say.
template <typename Json>
std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', true, Json::error_handler_t::replace);
}

}  // namespace sluice::cli
