#pragma once
// How wide a terminal is, and text that fits it.
//
// Thread contract: free functions.

#include <string>
#include <string_view>

namespace sluice::cli {

inline constexpr int kColumnsMin = 40;  // narrower ones get lines that they have to break

// Columns of the terminal on stdout, at least kColumnsMin; 80 where it is none.
int terminal_columns();

// Words of `text` on lines of at most `columns`, the later ones indented; ends with a line feed. A
// word that is longer has a line of its own.
std::string wrapped(const std::string& text, int columns, const std::string& indent);

// The same for a column that begins behind `begin` others, which stand on the first line already.
std::string in_column(const std::string& text, int columns, int begin);

// Lines as they are, and those that are longer than `columns` wrapped behind their own indent; but
// for commands, which are pasted as they stand (command_lines).
std::string fitted(const std::string& text, int columns);

// How many columns a terminal gives the text: two for wide characters, none for combining ones and
// for the marks of paint.h. The text is UTF-8.
std::size_t columns_of(std::string_view text);
// Where it has more columns, dots stand for what is left out. The end tells paths apart, the begin
// tells texts.
enum class Kept { begin, end };
std::string cut_to(std::string text, std::size_t columns_max, Kept kept = Kept::begin);

// With spaces behind it, at least so wide.
std::string padded(std::string_view text, int columns);

// A command on as many lines as it takes, each but the last ended by the shell's backslash, so that
// it is pasted as it stands; later lines are indented by `begin` columns, which the first has
// before it.
std::string command_lines(const std::string& command, int columns, int begin);

}  // namespace sluice::cli
