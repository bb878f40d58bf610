#pragma once
// Text of others, as a terminal or a page may show it: names from a database or a TOML file, and
// what a model writes. Such text can hold escape sequences that move the cursor, retitle the window
// or answer for the user.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

namespace sluice {

enum class LineFeeds { escape, keep };  // a name has none; a text of several lines keeps them

// Printable UTF-8 stays as it is; each other byte becomes \xNN: control characters (C0, DEL, C1),
// those that turn the direction of writing or end a line, and what is no UTF-8.
std::string escaped_for_terminal(std::string_view text, LineFeeds line_feeds = LineFeeds::escape);

// The same of the strings in a JSON text, which is valid UTF-8: whoever parses it gets \xNN. What
// JSON escapes itself (C0, quotes) stays as it is.
std::string escaped_in_json(std::string_view json);

}  // namespace sluice
