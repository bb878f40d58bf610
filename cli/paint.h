#pragma once
// Colours on a terminal: those of stages, phases and causes as the window and the page have them,
// and amber for what one should notice.
//
// Text is painted with marks, which only output.h turns into what the terminal has: 24 bits where
// COLORTERM says so, 256 colours where TERM does, otherwise nothing. Marks hold a number drawn at
// start, so no text of others can hold one, and escape sequences in such text stay escaped.
//
// Thread contract: main thread.

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/colour.h"
#include "base/escaped_text.h"

namespace sluice::cli {

enum class ColourDepth : std::uint8_t { none, of_256, of_24_bits };

// --color: auto (a terminal that has colours, and NO_COLOR is not set), always, never. False: there
// is no such word.
bool choose_colours(std::string_view when);
ColourDepth colour_depth(std::FILE* stream);

// With marks. One per line feed is not needed: a colour lasts over them.
std::string painted(std::string_view text, std::uint32_t colour);
inline constexpr std::uint32_t kAmber = 0xf3b33d;  // as in the window
inline std::string amber(std::string_view text) { return painted(text, kAmber); }

// A bar of `share` of `columns`, padded to all of them: blocks in its colour, to an eighth of a
// column, where stdout has colours, and # elsewhere.
std::string bar(double share, int columns, std::uint32_t colour);

// A mark at the beginning of `text`: its length, and the colour that begins; none: it ends.
struct PaintMark {
  std::size_t size_bytes = 0;
  std::optional<std::uint32_t> colour;
};
std::optional<PaintMark> mark_at(std::string_view text);
// Escaped for a terminal (base/escaped_text.h) but for its marks.
std::string escaped_but_marks(std::string_view text, LineFeeds line_feeds);
// Where the first mark begins, or the end of the text.
std::size_t next_mark(std::string_view text);
// The sequence that the terminal reads for it.
std::string sequence_of(const PaintMark& mark, ColourDepth depth);

}  // namespace sluice::cli
