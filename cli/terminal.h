#pragma once
// How wide a terminal is, and text that fits it.
//
// Thread contract: free functions.

#include <string>

namespace sluice::cli {

inline constexpr int kColumnsMin = 40;  // narrower ones get lines that they have to break

// Columns of the terminal on stdout, at least kColumnsMin; 80 where it is none.
int terminal_columns();

// Words of `text` on lines of at most `columns`, the later ones indented; ends with a line feed. A
// word that is longer has a line of its own.
std::string wrapped(const std::string& text, int columns, const std::string& indent);

// The same for a column that begins behind `begin` others, which stand on the first line already.
std::string in_column(const std::string& text, int columns, int begin);

}  // namespace sluice::cli
