#pragma once
// Text of others, as a terminal may see it: names from a database or a TOML file, and what a model
// writes. Such text can hold escape sequences that move the cursor, retitle the window or answer
// for the user.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

namespace sluice {

enum class LineFeeds { escape, keep };  // a name has none; a text of several lines keeps them

// Printable UTF-8 stays as it is; each other byte becomes \xNN: control characters (C0, DEL, C1),
// those that turn the direction of writing or end a line, and what is no UTF-8.
std::string escaped_for_terminal(std::string_view text, LineFeeds line_feeds = LineFeeds::escape);

}  // namespace sluice
